-- Something will be ready at this time, without anybody's doing: the first two who hear it look then, unless somebody does so before. Those
-- in front of them whom nobody hears are gone, and forgotten; only then, for nobody at all may hear while a slot of a cluster moves.
-- Needs queue_rules and now.
local function tell_time(waiting, when)
    if is_paused(was) or (was[4] > now and was[4] <= when) then return end
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
    if heard == 0 then return end
    was[4] = when
    save(key, was)
end
