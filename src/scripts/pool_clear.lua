--[[ pool_clear: take out the permits that nobody has. Who waits gets its due first; offers under way are kept.
  KEYS[1]  pool   hash
  ARGV[1]  rules  as in lock_acquire
  ARGV[2]  deadline_ms  if given: the server's time after which this must not run any more
  Returns  {'cleared', how many were dropped, now_ms} | {'late', now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local call, hold, rules = redis.call, '-.0', ARGV[1]
--#include server_time
if now > (tonumber(ARGV[2]) or now) then return {'late', now} end
--#include pool_state
--#include queue
--#include next_in_line
--#include pool_holds
--#include pool_pass_on
settle()
pass_on()
local spare = math.max(0, (count or 0) - used)
if count then count, need = count - spare, math.max(need, now) end
commit_all()
return {'cleared', spare, now}
