-- Who is told after a pull: of what it left or put back, of room, and when to look. Needs queue_pulled and more.
if (left or (want == 0 and more > 0)) and tell(KEYS[10], 'r', 1) > 0 then was[6] = false end
if #tokens > 0 and was[4] and tell(KEYS[11], 'm', math.min(#tokens, 4)) == 0 then call('HDEL', key, 'f') end
if waits == 0 and math.min(look, soonest) < 1e15 then tell_time(KEYS[10], math.min(look, soonest)) end
