-- Keys of items stay while an item has one; when all that are left are of items that are done, they go by themselves, with the last window.
-- The set goes later: a clock that is set back must not bring back the hash alone, in which a key would stay. Needs queue_once.
local function limit_keys(dedup, recent)
    local count = call('HLEN', dedup)
    if count == 0 or count ~= call('ZCARD', recent) then return end
    local last = call('ZRANGE', recent, -1, -1, 'WITHSCORES')[2]
    call('PEXPIREAT', dedup, last - was[6])
    call('PEXPIREAT', recent, last - was[6] + 60000)
end
