-- Who is told after a pull: of what it left or put back, of room, and when to look. Needs queue_pulled and more.
local when = waits == 0 and math.min(look, soonest) or 1e15
if left or (want == 0 and more > 0) then
    if tell(KEYS[10], 'r', 1) > 0 then
        was[4], when = false, math.min(when, now + 500)  -- who was told may sleep: the next ones look whether it has come
    else
        when = 1e15  -- nobody waits any more
    end
end
if #tokens > 0 and was[8] and tell(KEYS[11], 'm', math.min(#tokens, 4)) == 0 then call('HDEL', key, 'f') end
if when < 1e15 then tell_time(KEYS[10], when) end
