-- What a worker says of an item besides what can be said of jobs, too. Needs queue_return.
--   postpone <ms>  again, after that; this delivery does not count      fail  it is dead, for this reason
local function judged(_, entry, deliveries, what, span, why)
    if what == 'fail' then
        die(entry, deliveries, why)
    elseif what == 'postpone' and span == '0' then
        ready_again(entry, deliveries - 1, front)
    elseif what == 'postpone' then
        local id, _, more, at = open(entry)
        call('ZADD', later, now + span, id .. ' ' .. deliveries - 1 .. more .. '\n' .. string.sub(entry, at))
    else
        return false
    end
    return true
end
