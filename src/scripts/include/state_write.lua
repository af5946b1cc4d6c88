-- Writes set to the hash at key and takes del out of it. HSET comes first: a server out of memory refuses that one, and then nothing is half
-- done. Then the hash stays for span ms, or for good. Needs call, key, set and del.
local function write(span)
    for i = 1, #set, 1000 do call('HSET', key, unpack(set, i, math.min(i + 999, #set))) end
    for i = 1, #del, 1000 do call('HDEL', key, unpack(del, i, math.min(i + 999, #del))) end
    if span then call('PEXPIRE', key, string.format('%.0f', span)) else call('PERSIST', key) end
end
