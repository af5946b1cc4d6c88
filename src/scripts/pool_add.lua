--[[ pool_add: put more permits in, which creates the pool if need be, and offer them to those who wait. Said again, it counts once.
  KEYS[1]  pool      hash
  ARGV[1]  amount    how many permits, 0 to 10^12
  ARGV[2]  session   as in broadcast_set
  ARGV[3]  sequence  number of this call in the session, larger than those of its calls before
  ARGV[4]  rules     as in lock_acquire
  ARGV[5]  deadline_ms  if given: the server's time after which this must not run any more
  Returns  {'added', now_ms, first hold it was offered to or '', '?' when it had counted before} | {'late', now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local call, hold, rules, session = redis.call, '-.0', ARGV[4], ARGV[2]
local amount, sequence = tonumber(ARGV[1]), tonumber(ARGV[3])
if not (amount and amount <= 1e12 and sequence and sequence <= 2 ^ 53 and string.find(session, '^%S+$'))
    or string.find(ARGV[1] .. ARGV[3], '%D') then
    return redis.error_reply('LOCKSTEP_ARGUMENT amount: 0 to 10^12, session: no spaces, sequence: 0 to 2^53')
end
--#include server_time
if now > (tonumber(ARGV[5]) or now) then return {'late', now} end
--#include pool_state
--#include queue
--#include next_in_line
--#include pool_holds
--#include pool_pass_on
--#include once
local known = call('HMGET', key, 'a' .. session, 'rf', 'rl', 'rt')
if has_counted(known[1]) then return {'added', now, '?'} end
remember(unpack(known))
count, need = (count or 0) + amount, now
settle()
local first = pass_on()
commit_all()
return {'added', now, first}
