--[[ pool_claim: make offered permits one's own. Never queues.
  KEYS[1]  pool    hash
  ARGV[1]  hold    id of the hold they were offered to
  ARGV[2]  ttl_ms  length of the lease, an integer from 1 to 10^12
  ARGV[3]  amount  a number; what counts is what the hold asked for when it queued
  ARGV[4]  rules   as in lock_acquire
  Returns  {'granted', fence, 1, left_ms, now_ms} (also when it was claimed before)
           | {'queued', position at most, look_again_ms, now_ms} (it still waits) | {'gone', now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local call, hold, rules, ttl = redis.call, ARGV[1], ARGV[4], tonumber(ARGV[2])
if not (ttl and ttl >= 1 and ttl <= 1e12 and not string.find(ARGV[2], '%D') and tonumber(ARGV[3])) then
    return redis.error_reply('LOCKSTEP_ARGUMENT ttl_ms must be 1 to 10^12, amount a number')
end
--#include server_time
-- The usual way, in time and with nothing else to do.
local q = call('HMGET', KEYS[1], 'i' .. hold, 'b', 't', 'x', 'm', 'h', 'c', 'u', 'v')
local index, amount = string.match(q[1] or '', '^(%S+) (%S+) %S+ 0 %S+ offered$')
if index and q[9] == '2' and q[2] + 0 > now and q[2] + 0 <= now + ttl and us > (q[3] or 0) + 0 and now + ttl <= q[4] + 0
    and not q[5] and (not q[6] or q[8] and q[8] + 0 >= q[7] + 0) then
    local fence = string.format('%.0f', us)
    call('HSET', KEYS[1], 'i' .. hold, index .. ' ' .. amount .. ' ' .. ARGV[2] .. ' ' .. fence, 't', fence)
    return {'granted', us, 1, ttl, now}
end
--#include pool_state
--#include queue
--#include next_in_line
--#include pool_holds
--#include pool_pass_on
trust()
settle()
pass_on()
local answer = {'gone', now}
if mine and mine.state ~= 'held' then
    answer = take(ttl)
elseif mine then
    answer = {'granted', mine.fence, 1, mine.ends - now, now}
elseif ticket then
    answer = {'queued', place(), look_again(ttl), now}
end
commit_all()
return answer
