--[[ pool_change: hold fewer permits (always possible) or more of them (if they are free now) than before, for ttl_ms from now on.
  More passes the queue: those who wait there could not go before this hold ends anyway.
  KEYS[1]  pool    hash
  ARGV[1]  hold    id of the hold
  ARGV[2]  amount  how many permits from now on, 0 to 10^12
  ARGV[3]  ttl_ms  the lease's length from now on, an integer from 1 to 10^12
  ARGV[4]  rules   as in lock_acquire
  Returns  {'changed', fence (a new one for more), left_ms, now_ms} | {'busy', look_again_ms, now_ms} | {'gone', now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local call, hold, rules, amount, ttl = redis.call, ARGV[1], ARGV[4], tonumber(ARGV[2]), tonumber(ARGV[3])
if not (amount and amount >= 0 and amount <= 1e12 and amount % 1 == 0 and ttl and ttl >= 1 and ttl <= 1e12 and ttl % 1 == 0) then
    return redis.error_reply('LOCKSTEP_ARGUMENT amount must be 0 to 10^12, ttl_ms 1 to 10^12')
end
--#include server_time
--#include pool_state
--#include queue
--#include next_in_line
--#include pool_holds
--#include pool_pass_on
trust()
settle()
local more = mine and amount - mine.amount
if mine and (mine.mode ~= '' or (amount > count and more > 0)) then
    return redis.error_reply('LOCKSTEP_ARGUMENT amount ' .. amount .. ' is more than the count ' .. count .. ', or the hold has a mode')
end
if mine and more > count - used then settle(true) end
local answer = {'gone', now}
if mine and mine.state == 'held' and more > 0 and more > count - used then
    answer = {'busy', look_again(ttl), now}
elseif mine and mine.state == 'held' then
    used, mine.amount = used + more, amount
    take(ttl, more <= 0)
    answer = {'changed', mine.fence, ttl, now}
end
pass_on()
commit_all()
return answer
