-- Who is told after a pull: of what it left or put back, of room, and when to look. Needs queue_pulled, queue_next and more.
local when = waits == 0 and math.min(look, soonest) or 1e15
-- Who was to look may have got an item in a message, and have its hands full.
if want == 0 and was[4] <= now and was[5] < 1e15 then when = math.min(when, next_time(held, later)) end
if left or (want == 0 and more > 0) then
    if tell(waiting, 'r', 1) > 0 then
        when = math.min(when, now + 500)  -- who was told may sleep: the next ones look whether it has come
    else
        when = 1e15  -- nobody waits any more
    end
end
if #tokens > 0 and has[2] and tell(room, 'm', math.min(#tokens, 4)) == 0 then call('HDEL', key, 'f') end
if when < 1e15 then tell_time(waiting, when) end
