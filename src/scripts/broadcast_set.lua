--[[ broadcast_set: set the event, and tell all who wait. It stays set until it is cleared, or not used for the retention.
  KEYS[1]  event        hash
  ARGV[1]  session      who calls, no spaces: calls of one session follow one another, concurrent ones need a session each
  ARGV[2]  sequence     grows with each call of the session, an integer of at least 1; not larger than the last one: sent again.
                        What was counted within a minute is known
  ARGV[3]  deadline_ms  the server's time after which this must not run any more
  ARGV[4]  rules        '<claim window ms> <retention ms> <channel>': a client that waits hears '=<KEYS[1]>' on <channel><client>, by
                        SPUBLISH if <channel> has a hash tag
  Returns  {'set', generation, now_ms} (sent again: the generation of the last set) | {'late', now_ms} (it did not count before)
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local format, rules, session = 'broadcast 1', ARGV[4], ARGV[1]
--#include checks
--#include gate_rules
local sequence, deadline = whole(ARGV[2], 1, 1e15), whole(ARGV[3], 0, 1e15)
if not (sequence and deadline and string.find(session, '^%S+$')) then
    return refuse('session: no spaces, sequence: at least 1, deadline_ms: a time')
end
local was = call('HMGET', key, 'v', 'g', 'a' .. session, 'rf', 'rl', 'rt', 'w')
--#include gate_state
-- Also the time, so that it grows after the hash was gone.
local generation = math.max((was[2] or 0) + 1, us)
local set, del = {'v', format, 'g', generation, 's', 1}, {}
--#include once
--#include gate_tell_all
if has_counted(was[3]) then return {'set', tonumber(was[2] or 0), now} end
if now > deadline then return {'late', now} end
remember(was[3], was[4], was[5], was[6])
change(set, del)
if was[7] then tell_all() end
return {'set', generation, now}
