#!lua flags=allow-oom
--[[ pool_clear: take out the permits that nobody has. Who waits gets its due first; offers under way are kept. Said again, it counts once.
  KEYS[1]  pool      hash
  ARGV[1]  session   as in pool_add
  ARGV[2]  sequence  as in pool_add
  ARGV[3]  rules     as in lock_acquire
  ARGV[4]  deadline_ms  the server's time after which this must not run any more
  Returns  {'cleared', how many were dropped, now_ms} | {'late', now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local call, hold, rules, session = redis.call, '-.0', ARGV[3], ARGV[1]
local sequence, deadline = tonumber(ARGV[2]), tonumber(ARGV[4])
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
if has_counted(known[1]) then return {'cleared', tonumber(answer_of(known[1])) or 0, now} end
settle()
pass_on()
local spare = math.max(0, (count or 0) - used)
if count then count, need = count - spare, math.max(need, now) end
if count then remember(known[1], known[2], known[3], known[4], spare) end
commit_all()
return {'cleared', spare, now}
