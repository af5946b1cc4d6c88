--[[ broadcast_clear: from now on who comes waits. Who waited when the event was set is free all the same.
  KEYS[1]  event        hash
  ARGV[1]  session      as in broadcast_set
  ARGV[2]  sequence     as in broadcast_set, which it shares
  ARGV[3]  deadline_ms  the server's time after which this must not run any more
  ARGV[4]  rules        as in broadcast_set
  Returns  {'cleared', generation of the last set, now_ms} | {'late', now_ms} (it did not count before)
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local format, rules, session = 'broadcast 1', ARGV[4], ARGV[1]
--#include checks
--#include gate_rules
local sequence, deadline = whole(ARGV[2], 1, 1e15), whole(ARGV[3], 0, 1e15)
if not (sequence and deadline and string.find(session, '^%S+$')) then
    return refuse('session: no spaces, sequence: at least 1, deadline_ms: a time')
end
local was = call('HMGET', key, 'v', 'g', 'a' .. session, 'rf', 'rl', 'rt')
--#include gate_state
local set, del = {'v', format}, {'s'}
--#include once
if not has_counted(was[3]) then
    if now > deadline then return {'late', now} end
    remember(was[3], was[4], was[5], was[6])
    change(set, del)
end
return {'cleared', tonumber(was[2] or 0), now}
