--[[ pool_create: give a pool its count, and offer permits to those who wait for that. The same count again changes nothing. Those who
  wait for more than that are told, and pool_acquire says why they wait no longer.
  KEYS[1]  pool   hash
  ARGV[1]  count  how many permits, 0 to 10^12
  ARGV[2]  rules  as in lock_acquire
  Returns  {'created', now_ms} | {'exists', now_ms}
  Errors   LOCKSTEP_COUNT <the count it has>, LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
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
if count and count ~= asked then return redis.error_reply('LOCKSTEP_COUNT ' .. count) end
local new = not count
count, need = asked, now
settle()
local tell_them = new and turn_away()
pass_on()
commit_all()
if new then tell_them() end
return {new and 'created' or 'exists', now}
