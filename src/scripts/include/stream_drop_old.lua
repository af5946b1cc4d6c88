-- drop_old(dead, retention_ms, max_length): drops dead letters that are older than that, and the oldest beyond about so many (0 each: none). Returns how
-- many. Whole nodes, a bounded number of them in one call; when none is left that is all too old, what is too old is in the first one.
local function drop_old(dead, retention_ms, max_length)
    local most, dropped = 1000, 0
    if retention_ms > 0 then
        local time = redis.call('TIME')
        local oldest = string.format('%.0f', math.max(0, time[1] * 1000 + math.floor(time[2] / 1000) - retention_ms))
        local function drop_nodes() return redis.call('XTRIM', dead, 'MINID', '~', oldest, 'LIMIT', most) end
        dropped = drop_nodes()
        local more = dropped < most and drop_nodes() or 0
        if dropped < most and more == 0 then more = redis.call('XTRIM', dead, 'MINID', oldest) end
        dropped = dropped + more
    end
    if max_length > 0 then dropped = dropped + redis.call('XTRIM', dead, 'MAXLEN', '~', max_length, 'LIMIT', most) end
    return dropped
end
