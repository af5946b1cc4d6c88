--[[ election_acquire: become the leader, or stand in line. As lock_acquire, but for priorities and for what is written down.
  KEYS[1]  election     hash, as a lock's
  KEYS[2]  changes      stream
  ARGV[1]  hold         as in lock_acquire, and so are ttl_ms, deadline_ms, waiters and rules
  ARGV[2]  ttl_ms
  ARGV[3]  deadline_ms
  ARGV[4]  fences       1
  ARGV[5]  waiters
  ARGV[6]  rules
  ARGV[7]  who          '<pid> <host> <id>', no newline: what others are told of the leader
  ARGV[8]  priority     an integer from 0 to 1000; the highest is offered it first
  Returns  {'granted', term, 1, left_ms, now_ms} | {'queued', position at most, look_again_ms, now_ms, 1 if its place is new}
           | {'busy', look_again_ms, now_ms} | {'late', now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT, LOCKSTEP_WAITERS (nothing was written)
]]
local call, hold, rules, who = redis.call, ARGV[1], ARGV[6], ARGV[7]
local ttl, deadline, limit, priority = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[5]), tonumber(ARGV[8])
if not (deadline and limit and priority and priority >= 0 and priority <= 1000 and priority % 1 == 0) or ARGV[4] ~= '1'
    or not string.find(who, '^%d+ %S+ [^\n]+$') then
    return redis.error_reply('LOCKSTEP_ARGUMENT deadline_ms, waiters: numbers, fences: 1, who: <pid> <host> <id>, priority: 0 to 1000')
end
--#include ttl_check
--#include server_time
--#include lock_state
if now > deadline then return {'late', now} end
--#include queue
--#include next_in_line
--#include election_state
trust()
settle()
local trying, new = limit == 0 and not ticket, not ticket
if owner ~= hold and (owner or head) then
    if trying and owner then
        commit_all()
        return {'busy', ends - now, now}
    elseif not ticket then
        if not trying and tail and tail - head + 1 - holes >= limit then
            return redis.error_reply('LOCKSTEP_WAITERS too many wait for this election')
        end
        join(priority > 0 and priority or nil)
        ranked = ranked or priority > 0
    end
    if not owner then pass_on() end
end
local answer
if (not owner and not head) or (owner == hold and state ~= 'held') then
    answer = elect(ttl, who)
elseif owner == hold then
    answer = {'granted', last, 1, ends - now, now}
elseif trying then
    leave(ticket)
    answer = {'busy', look_again(), now}
else
    answer = {'queued', place(), look_again(), now, new and 1 or 0}
end
commit_all()
return answer
