#!lua flags=allow-oom
--[[ pool_change: hold fewer permits (always possible) or more of them (if they are free now) than before, for ttl_ms from now on.
  More passes the queue: those who wait there could not go before this hold ends anyway.
  KEYS[1]  pool    hash
  ARGV[1]  hold    id of the hold
  ARGV[2]  amount  how many permits from now on, 0 to 10^12
  ARGV[3]  ttl_ms  the lease's length from now on, an integer from 1 to 10^12
  ARGV[4]  rules   as in lock_acquire
  ARGV[5]  number  as in lock_renew
  ARGV[6]  deadline_ms  the server's time after which this must not run any more
  Returns  {'changed', fence (a new one for more), left_ms, now_ms} | {'busy', look_again_ms, now_ms} | {'older', left_ms, now_ms}
           | {'gone', now_ms} | {'late', now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local call, hold, rules, amount, ttl = redis.call, ARGV[1], ARGV[4], tonumber(ARGV[2]), tonumber(ARGV[3])
local asked, deadline = tonumber(ARGV[5]), tonumber(ARGV[6])
if not (amount and amount >= 0 and amount <= 1e12 and amount % 1 == 0 and ttl and ttl >= 1 and ttl <= 1e12 and ttl % 1 == 0) then
    return redis.error_reply('LOCKSTEP_ARGUMENT amount must be 0 to 10^12, ttl_ms 1 to 10^12')
end
--#include number_check
--#include server_time
--#include pool_state
--#include pool_upgrade
--#include queue
--#include next_in_line
--#include pool_holds
--#include pool_settle
--#include pool_pass_on
trust()
settle()
local had = mine and mine.amount
local more = mine and amount - had
if mine and (mine.mode ~= '' or (amount > count and more > 0)) then
    return redis.error_reply('LOCKSTEP_ARGUMENT amount ' .. amount .. ' is more than the count ' .. count .. ', or the hold has a mode')
end
local answer = {'gone', now}
if mine and mine.state == 'held' then
    if now > deadline then return {'late', now} end
    if asked < mine.number then return {'older', mine.ends - now, now} end
    if asked > mine.number then
        mine.number = asked
        touch(mine)
        if more <= 0 or more <= count - used then
            used, mine.amount, more = used + more, amount, 0
            take(ttl, mine.amount <= had)
        end
    end
    answer = more == 0 and {'changed', mine.fence, mine.ends - now, now} or {'busy', look_again(ttl), now}
end
pass_on()
commit_all()
return answer
