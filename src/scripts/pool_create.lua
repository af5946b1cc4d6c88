--[[ pool_create: give a pool its count, and offer permits to those who wait for that. The same count again changes nothing. Those who
  wait for more than that are told, and pool_acquire says why they wait no longer.
  KEYS[1]  pool   hash
  ARGV[1]  count  how many permits, 0 to 10^12
  ARGV[2]  rules  as in lock_acquire
  ARGV[3]  from   '', or of a call again the ticket to go on at
  Returns  {'created', now_ms, first hold it offered to or '', ticket to go on at or 0} | {'exists', the same three}
  Errors   LOCKSTEP_COUNT <the count it has>, LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local call, hold, rules, asked = redis.call, '-.0', ARGV[2], tonumber(ARGV[1])
--#include count_check
--#include server_time
--#include pool_state
--#include pool_upgrade
--#include queue
--#include next_in_line
--#include pool_holds
--#include pool_settle
--#include pool_pass_on
--#include pool_set_count
local from = tonumber(ARGV[3])
if count and count ~= asked and not from then return redis.error_reply('LOCKSTEP_COUNT ' .. count) end
local word = count and 'exists' or 'created'
return {word, now, set_count(from and count or asked, from)}
