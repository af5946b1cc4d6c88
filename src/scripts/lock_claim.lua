#!lua flags=allow-oom
--[[ lock_claim: make an offered lock one's own. Never queues.
  KEYS[1]  lock    hash
  ARGV[1]  hold    id of the hold it was offered to
  ARGV[2]  ttl_ms  length of the lease, an integer from 1 to 10^12
  ARGV[3]  fences  how many fences to reserve, 1 to 1000
  ARGV[4]  rules   as in lock_acquire
  Returns  {'granted', fence, fences, left_ms, now_ms} (also when it was claimed before)
           | {'queued', position at most, look_again_ms, now_ms, 0} (it still waits) | {'gone', now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local call, hold, rules = redis.call, ARGV[1], ARGV[4]
local ttl, fences = tonumber(ARGV[2]), tonumber(ARGV[3])
if not (ttl and ttl >= 1 and ttl <= 1e12 and ttl % 1 == 0 and fences and fences >= 1 and fences <= 1000 and fences % 1 == 0) then
    return redis.error_reply('LOCKSTEP_ARGUMENT ttl_ms must be 1 to 10^12, fences 1 to 1000')
end
local time = call('TIME')
local us = time[1] * 1000000 + time[2]
local now = (us - us % 1000) / 1000
-- The usual way, in time and with nothing else to do.
local q = call('HMGET', KEYS[1], 'o', 'p', 's', 'e', 'f', 'x', 'd', 'v')
if q[1] == '*' and q[2] == hold and q[3] == 'offered' and q[4] + 0 > now and now + ttl <= q[6] + 0 and q[8] == '3' then
    local fence = us
    if us <= q[5] + 0 then fence, fences = q[5] + 1, 1 end  -- as in take()
    call('HSET', KEYS[1], 's', 'held', 'e', now + ttl, 'd', ARGV[2], 'f', fence + fences - 1)
    return {'granted', fence, fences, ttl, now}
end
--#include lock_state
if owner == hold and ends > now then
    local answer = {'granted', last, 1, ends - now, now}
    if state ~= 'held' then answer = take(ttl, fences) end
    commit()
    return answer
end
--#include queue
--#include next_in_line
--#include lock_pass_on
trust()
settle()
if not owner and head then pass_on() end
local answer = {'gone', now}
if owner == hold then
    answer = take(ttl, fences)
elseif ticket then
    answer = {'queued', place(), look_again(), now, 0}
end
commit_all()
return answer
