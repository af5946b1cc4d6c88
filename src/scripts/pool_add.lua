--[[ pool_add: put more permits in, which creates the pool if need be, and offer them to those who wait. Said again, it counts once.
  KEYS[1]  pool      hash
  ARGV[1]  session   as in broadcast_set, and shared with pool_clear and pool_resize
  ARGV[2]  sequence  number of this call in the session, larger than those of its calls before
  ARGV[3]  amount    how many permits, 0 to 10^12
  ARGV[4]  rules     as in lock_acquire
  ARGV[5]  deadline_ms  the server's time after which this must not run any more
  Returns  {'added', now_ms, first hold it was offered to or '', '?' when it had counted before} | {'late', now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local call, hold, rules, session = redis.call, '-.0', ARGV[4], ARGV[1]
local sequence, asked, deadline = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[5])
--#include count_check
--#include session_check
--#include server_time
if now > deadline then return {'late', now} end
--#include pool_state
--#include pool_upgrade
--#include queue
--#include next_in_line
--#include pool_holds
--#include pool_settle
--#include pool_pass_on
--#include once
local known = call('HMGET', key, 'a' .. session, 'rf', 'rl', 'rt')
if has_counted(known[1]) then return {'added', now, '?'} end
remember(unpack(known))
count, need = (count or 0) + asked, math.max(need, now)
settle()
local first = pass_on()
commit_all()
return {'added', now, first}
