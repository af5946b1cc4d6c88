#!lua flags=allow-oom
--[[ election_claim: take up the leadership that was offered. Never queues.
  KEYS[1]  election  hash
  KEYS[2]  changes   stream
  ARGV[1]  hold      id of the hold it was offered to
  ARGV[2]  ttl_ms    as in lock_claim
  ARGV[3]  fences    1
  ARGV[4]  rules     as in lock_acquire
  ARGV[5]  who       as in election_acquire
  Returns  {'granted', term, 1, left_ms, now_ms} (also when it was claimed before)
           | {'queued', position at most, look_again_ms, now_ms, 0} (it still waits) | {'gone', now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local call, hold, ttl, rules, who = redis.call, ARGV[1], tonumber(ARGV[2]), ARGV[4], ARGV[5]
if ARGV[3] ~= '1' or not string.find(who, '^%d+ %S+ [^\n]+$') then
    return redis.error_reply('LOCKSTEP_ARGUMENT fences: 1, who: <pid> <host> <id>')
end
--#include ttl_check
--#include server_time
-- The usual way, in time and with nothing else to do. The stream follows with election_announce.
local q = call('HMGET', KEYS[1], 'o', 'p', 's', 'e', 'f', 'x', 'v', 'u')
if q[1] == '*' and q[2] == hold and q[3] == 'offered' and q[4] + 0 > now and now + ttl <= q[6] + 0 and q[7] == '3' then
    local term = us > q[5] + 0 and us or q[5] + 1
    call('HSET', KEYS[1], 's', 'held', 'e', now + ttl, 'd', ARGV[2], 'f', term, 'n', string.format('%s %.0f %s', hold, now, who),
         'u', (q[8] or '') .. string.format('elected %.0f %.0f %s\n', term, now, who))
    return {'granted', term, 1, ttl, now}
end
--#include lock_state
--#include queue
--#include next_in_line
--#include election_state
trust()
settle()
if not owner and head then pass_on() end
local answer = {'gone', now}
if owner == hold and state == 'held' then
    answer = {'granted', last, 1, ends - now, now}
elseif owner == hold then
    answer = elect(ttl, who)
elseif ticket then
    answer = {'queued', place(), look_again(), now, 0}
end
commit_all()
return answer
