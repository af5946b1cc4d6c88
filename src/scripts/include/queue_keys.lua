-- Keys of items stay while an item has one; when all that are left are of items that are done, they go by themselves, with the last window.
-- Needs call.
local function limit_keys(dedup, recent)
    local count = call('HLEN', dedup)
    if count == 0 or count ~= call('ZCARD', recent) then return end
    local last = call('ZRANGE', recent, -1, -1, 'WITHSCORES')[2]
    call('PEXPIREAT', dedup, last)
    call('PEXPIREAT', recent, last)
end
