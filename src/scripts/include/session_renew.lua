-- A session was used. Not moved when a hundredth of its ttl has not passed yet: each move goes to the replicas. Needs call, key, now, was (5: its
-- end, 6: its ttl).
local span = math.min(tonumber(was[6]), was[5] - now)
if span <= 0 then
    call('DEL', key)
    return {}
end
if call('PTTL', key) < span * 0.99 then call('PEXPIRE', key, string.format('%.0f', span)) end
