--[[ pool_resize: change how many permits there are. Fewer than are taken is allowed: nobody gets one until enough came back. Those who
  wait for more than there are then wait no longer: they are told, and pool_acquire says why. What was offered before stays offered.
  KEYS[1]  pool   hash
  ARGV[1]  count  how many permits, 0 to 10^12
  ARGV[2]  rules  as in lock_acquire
  ARGV[3]  deadline_ms  if given: the server's time after which this must not run any more
  Returns  {'resized', old count, now_ms, first hold it offered to or ''} | {'gone', now_ms} (no such pool was created) | {'late', now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local call, hold, rules, asked = redis.call, '-.0', ARGV[2], tonumber(ARGV[1])
--#include count_check
--#include server_time
if now > (tonumber(ARGV[3]) or now) then return {'late', now} end
--#include pool_state
--#include queue
--#include next_in_line
--#include pool_holds
--#include pool_pass_on
--#include pool_set_count
if not count then return {'gone', now} end
local before = count
return {'resized', before, now, set_count(asked)}
