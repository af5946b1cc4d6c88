--[[ pool_resize: change how many permits there are. Fewer than are taken is allowed: nobody gets one until enough came back. Those who
  wait for more than there are then wait no longer: they are told, and pool_acquire says why. What was offered before stays offered.
  KEYS[1]  pool   hash
  ARGV[1]  count  how many permits, 0 to 10^12
  ARGV[2]  rules  as in lock_acquire
  Returns  {'resized', old count, now_ms} | {'gone', now_ms} (no such pool was created)
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local call, hold, rules, asked = redis.call, '-.0', ARGV[2], tonumber(ARGV[1])
if not (asked and asked >= 0 and asked <= 1e12 and asked % 1 == 0) then
    return redis.error_reply('LOCKSTEP_ARGUMENT count must be 0 to 10^12')
end
local time = call('TIME')
local us = time[1] * 1000000 + time[2]
local now = (us - us % 1000) / 1000
--#include pool_state
--#include queue
--#include next_in_line
--#include pool_holds
--#include pool_pass_on
--#include pool_turn_away
if not count then return {'gone', now} end
local answer, fewer = {'resized', count, now}, asked < count
count, need = asked, now
settle()
local tell_them = fewer and turn_away()
pass_on()
commit_all()
if fewer then tell_them() end
return answer
