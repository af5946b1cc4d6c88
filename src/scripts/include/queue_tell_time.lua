-- Something will be ready at this time, without anybody's doing: the first two who wait look then, unless one of them does so before.
-- Needs queue_rules and now.
local function tell_time(waiting, when)
    local looks = tonumber(was[6] or 0)
    if looks > now and looks <= when then return end
    local heard = 0
    for _, first in ipairs(call('ZRANGE', waiting, 0, 1)) do
        if redis.pcall(publish, channel .. first, string.format('d%.0f', when - now)) ~= 0 then heard = heard + 1 end
    end
    if heard > 0 then call('HSET', key, 't', string.format('%.0f', when)) end
end

-- Who asks waits, and looks again at this time at the latest; those who wait look one after the other, or all would ask for the same.
local function wait_from_now(waiting, name, look)
    call('ZADD', waiting, 'NX', us, name)
    local rank = call('ZRANK', waiting, name)
    look = math.min(look, now + 30000) + math.min(rank, 16) * 10
    local looks = tonumber(was[6] or 0)
    if rank == 0 or looks <= now or look < looks then call('HSET', key, 't', string.format('%.0f', look)) end
    return look
end
