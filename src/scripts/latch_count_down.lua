--[[ latch_count_down: bring the latch closer to its opening. Who opens it tells all who wait.
  KEYS[1]  latch        hash
  ARGV[1]  n            by how much, an integer of at least 1 and at most what is left
  ARGV[2]  session      as in broadcast_set
  ARGV[3]  sequence     as in broadcast_set
  ARGV[4]  deadline_ms  the server's time after which this must not run any more
  ARGV[5]  rules        as in broadcast_set
  Returns  {'counted', left, now_ms} | {'late', now_ms} (it did not count before) | {'absent', now_ms}
  Errors   LOCKSTEP_ARGUMENT (also: more than is left), LOCKSTEP_FORMAT (nothing was written)
]]
local format, rules, session = 'latch 1', ARGV[5], ARGV[2]
--#include checks
--#include gate_rules
local n, sequence, deadline = whole(ARGV[1], 1, 1e12), whole(ARGV[3], 1, 1e15), whole(ARGV[4], 0, 1e15)
if not (n and sequence and deadline and string.find(session, '^%S+$')) then
    return refuse('n, sequence: at least 1, session: no spaces, deadline_ms: a time')
end
local was = call('HMGET', key, 'v', 'l', 'a' .. session, 'rf', 'rl', 'rt')
--#include gate_state
if not was[1] then return {'absent', now} end
local left = tonumber(was[2])
local set, del = {'l', left - n}, {}
--#include once
--#include gate_tell_all
if has_counted(was[3]) then return {'counted', left, now} end
if now > deadline then return {'late', now} end
if n > left then return refuse('it can be counted down by ' .. left .. ' at most, not by ' .. ARGV[1]) end
remember(was[3], was[4], was[5], was[6])
change(set, del)
if n == left then tell_all() end
return {'counted', left - n, now}
