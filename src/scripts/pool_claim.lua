#!lua flags=allow-oom
--[[ pool_claim: make offered permits one's own. Never queues.
  KEYS[1]  pool    hash
  ARGV[1]  hold    id of the hold they were offered to
  ARGV[2]  ttl_ms  length of the lease, an integer from 1 to 10^12
  ARGV[3]  amount  a number; what counts is what the hold asked for when it queued
  ARGV[4]  rules   as in lock_acquire
  Returns  {'granted', fence, 1, left_ms, now_ms} (also when it was claimed before)
           | {'queued', position at most, look_again_ms, now_ms, 0} (it still waits) | {'gone', now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local call, hold, rules, ttl = redis.call, ARGV[1], ARGV[4], tonumber(ARGV[2])
if not (ttl and ttl >= 1 and ttl <= 1e12 and not string.find(ARGV[2], '%D') and tonumber(ARGV[3])) then
    return redis.error_reply('LOCKSTEP_ARGUMENT ttl_ms must be 1 to 10^12, amount a number')
end
--#include server_time
-- The usual way, in time and with nothing else to do.
local q = call('HMGET', KEYS[1], 'i' .. hold, 'b', 't', 'x', 'h', 'c', 'u', 'v', 'e', 'j', 'm')
local index, amount, ends, number = string.match(q[1] or '', '^(%S+) (%S+) %S+ 0 (%S+) offered (%d+)$')
if index and q[8] == '4' and ends + 0 > now and q[2] and q[2] + 0 > now and q[2] + 0 <= now + ttl and us > (q[3] or 0) + 0
    and now + ttl <= q[4] + 0 and (not q[5] or q[7] and q[7] + 0 >= q[6] + 0)
    and not (q[11] and string.find(q[11], ' ' .. string.match(hold, '^[^.]+') .. ' ', 1, true)) then
    local fence = string.format('%.0f', us)
    local first, rest = string.match(q[9], '^(%d+)(.*)$')
    call('HSET', KEYS[1], 'i' .. hold, index .. ' ' .. amount .. ' ' .. ARGV[2] .. ' ' .. fence, 't', fence, 'e', first == number and number + 1 .. rest or q[9])
    if first == number and q[10] == number then
        call('HDEL', KEYS[1], 'y' .. number, 'e', 'j')
    else
        call('HDEL', KEYS[1], 'y' .. number)
    end
    return {'granted', us, 1, ttl, now}
end
--#include pool_state
--#include pool_upgrade
--#include queue
--#include next_in_line
--#include pool_holds
--#include pool_settle
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
    answer = {'queued', place(), look_again(ttl), now, 0}
end
commit_all()
return answer
