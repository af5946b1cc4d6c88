#!lua flags=allow-oom
--[[ pool_resize: change how many permits there are. Fewer than are taken is allowed: nobody gets one until enough came back. Those who
  wait for more than there are then wait no longer: they are told, and pool_acquire says why. What was offered before stays offered.
  KEYS[1]  pool      hash
  ARGV[1]  session   as in pool_add
  ARGV[2]  sequence  as in pool_add
  ARGV[3]  count     how many permits, 0 to 10^12
  ARGV[4]  from      '', or of a call again (with another sequence) the ticket to go on at: it turns away more of those who wait, and sets no count
  ARGV[5]  rules     as in lock_acquire
  ARGV[6]  deadline_ms  the server's time after which this must not run any more
  Returns  {'resized', old count, now_ms, first hold it offered to or '', ticket to go on at or 0} | {'gone', now_ms} (no such pool was created)
           | {'late', now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local call, hold, rules, session = redis.call, '-.0', ARGV[5], ARGV[1]
local sequence, asked, deadline, from = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[6]), tonumber(ARGV[4])
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
--#include pool_set_count
--#include once
if not count then return {'gone', now} end
local known = call('HMGET', key, 'a' .. session, 'rf', 'rl', 'rt')
if has_counted(known[1]) then return {'resized', tonumber(answer_of(known[1])) or count, now, '', head or 0} end
local before = count
remember(known[1], known[2], known[3], known[4], before)
return {'resized', before, now, set_count(from and count or asked, from)}
