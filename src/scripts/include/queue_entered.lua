-- Puts them there, and tells who waits. Needs queue_enter and queue_offer, queue_tell and queue_tell_time.
if accepted < count and ARGV[4] ~= '' then
    touch('l', batch, 'f', 1)
    call('ZADD', KEYS[8], 'NX', us_text, ARGV[4])
    call('PEXPIRE', KEYS[8], 300000)
else
    touch('l', batch)
end
in_chunks('RPUSH', KEYS[2], plain)
in_chunks('ZADD', KEYS[3], ranked)
in_chunks('ZADD', KEYS[4], later)
if #later > 0 then lower(earliest) end
for name, id in pairs(keys) do
    call('HSET', dedup, name, id)
    call('ZREM', recent, name)
end
if next(keys) then
    call('PERSIST', dedup)
    call('PERSIST', recent)
end
remember(done)
if #plain + #ranked > 0 then told = tell(KEYS[7], 'r', math.min(#plain + #ranked / 2, 8)) end
if told > 0 then was[4] = false end
if #later > 0 then tell_time(KEYS[7], earliest) end
