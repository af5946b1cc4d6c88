-- Something will be ready at this time, without anybody's doing: the first two who hear it look then, unless somebody does so before. Those
-- in front of them whom nobody hears are gone, and forgotten; only then, for nobody at all may hear while a slot of a cluster moves.
-- Needs queue_rules and now.
local function tell_time(waiting, when)
    local looks = tonumber(was[6] or 0)
    if looks > now and looks <= when then return end
    local heard, deaf, gone = 0, {}, 0
    for _, name in ipairs(call('ZRANGE', waiting, 0, 31)) do
        if redis.pcall(publish, channel .. name, string.format('d%.0f', when - now)) == 0 then
            deaf[#deaf + 1] = name
        else
            heard, gone = heard + 1, #deaf
            if heard == 2 then break end
        end
    end
    if gone > 0 then call('ZREM', waiting, unpack(deaf, 1, gone)) end
    if heard > 0 then call('HSET', key, 't', string.format('%.0f', when)) end
end

-- Who asks waits, and looks again at this time at the latest; the first ones one after the other, or all would ask for the same, and those
-- behind them seldom if somebody looks at that time. Names stay for longer than it takes who waits to look again.
local function wait_from_now(waiting, name, look)
    call('ZADD', waiting, 'NX', us, name)
    call('PEXPIRE', waiting, 300000)
    local rank, looks = call('ZRANK', waiting, name), tonumber(was[6] or 0)
    look = math.min(look, now + 30000)
    if rank > 2 and looks > now and looks <= look + 20 then
        -- Whoever said that it would look may have died since.
        for _, first in ipairs(call('ZRANGE', waiting, 0, 2)) do
            if redis.pcall(publish, channel .. first, string.format('d%.0f', math.max(look - now, 1))) ~= 0 then return now + 30000 end
        end
    end
    look = look + math.min(rank, 16) * 10
    if rank == 0 or looks <= now or look < looks then call('HSET', key, 't', string.format('%.0f', look)) end
    return look
end
