--[[ lock_acquire: take the lock, or queue for it. The same hold again gets the same answer.
  KEYS[1]  lock         hash
  ARGV[1]  hold         id of this hold: '<client>.<n>', no spaces
  ARGV[2]  ttl_ms       length of the lease, an integer from 1 to 10^12
  ARGV[3]  deadline_ms  the server's time after which this must not run any more
  ARGV[4]  fences       how many fences to reserve, 1 to 1000
  ARGV[5]  waiters      how many may wait; 0: do not wait
  ARGV[6]  rules        '<claim window ms> <retention ms> <channel>': a waiting client hears of its hold on <channel><client>, by
                        SPUBLISH if <channel> has a hash tag
  Returns  fence (alone: granted for ttl_ms with all fences, and the fence is also the server's time in µs)
           | {'granted', fence, fences, left_ms, now_ms} | {'queued', position at most, look_again_ms, now_ms, 1 if its place is new}
           | {'busy', look_again_ms, now_ms} | {'late', now_ms}; look_again_ms 0: not all who are gone are out of the way, so ask again at once
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT, LOCKSTEP_WAITERS (nothing was written). An argument is checked where it is used.
]]
local call, hold, rules = redis.call, ARGV[1], ARGV[6]
local ttl, deadline, fences = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
if not (ttl and ttl >= 1 and ttl <= 1e12 and ttl % 1 == 0 and deadline and fences and fences >= 1 and fences <= 1000
        and fences % 1 == 0 and string.find(hold, '.', 2, true)) then
    return redis.error_reply('LOCKSTEP_ARGUMENT hold: <client>.<n>, ttl_ms: 1 to 10^12, deadline_ms: a number, fences: 1 to 1000')
end
local time, free = call('TIME'), call('HMGET', KEYS[1], 'o', 'f', 'x')
local fence = time[1] .. time[2]
if #time[2] < 6 then fence = time[1] .. string.sub('00000' .. time[2], -6) end
local us = fence + 0
-- The short way, free and nothing to move: what TIME said is written as it is, since formatting numbers is what costs here.
if not free[1] and free[2] and us / 1000 + ttl <= free[3] + 0 and us / 1000 <= deadline then
    local ahead = free[2] - us
    if ahead < 0 then
        call('HSET', KEYS[1], 't', ARGV[2], 'f', fences == 1 and fence or us + fences - 1, 'o', hold)
        return us
    elseif ahead < 1000 then  -- reserved by somebody who came and went within that time: one fence, right behind them
        call('HSET', KEYS[1], 't', ARGV[2], 'f', free[2] + 1, 'o', hold)
        return {'granted', free[2] + 1, 1, ttl, (us - us % 1000) / 1000}
    end
end

local limit, now = tonumber(ARGV[5]), (us - us % 1000) / 1000
if not limit or deadline ~= deadline then return redis.error_reply('LOCKSTEP_ARGUMENT waiters, deadline_ms: numbers') end
-- The usual way when others are before us: the owner's time is not over, and nothing is to be put right. Only the rest below knows
-- every rule; this is what it would do, without the price of reading and defining it all.
if free[1] == '*' and now <= deadline then
    local q = call('HMGET', KEYS[1], 'v', 'e', 'h', 'l', 'z', 'm', 'w' .. hold, 'p', 'd')
    local left, count = (q[2] or 0) - now, q[3] and q[4] - q[3] - (q[5] or 0) + 1 or 0
    local client, window = string.match(hold, '^([^ .]+)%.[^ ]+$'), string.match(rules, '^%d+')
    if q[1] == '3' and left > 0 and left <= (q[9] or 0) + 0 and not q[7] and q[8] ~= hold and count < limit and client and window
        and not (q[6] and string.find(q[6], ' ' .. client .. ' ', 1, true)) then
        local ticket = string.format('%d', (q[4] or 0) + 1)
        local text = window == '500' and hold or hold .. ' ' .. window .. '@'
        call('HSET', KEYS[1], 'q' .. ticket, text, 'w' .. hold, ticket, 'l', ticket, 'h', q[3] or ticket)
        return {'queued', count + 1, left, now, 1}
    end
end
--#include lock_state
if now > deadline then return {'late', now} end
--#include queue
--#include next_in_line
--#include lock_pass_on
trust()
settle()
local trying, new = limit == 0 and not ticket, not ticket
if owner ~= hold and (owner or head) then
    if trying and owner then
        commit_all()
        return {'busy', ends - now, now}
    elseif not ticket then
        if not trying and tail and tail - head + 1 - holes >= limit then
            return redis.error_reply('LOCKSTEP_WAITERS too many wait for this lock')
        end
        join()
    end
    if not owner then pass_on() end
end
local answer
if (not owner and not head) or (owner == hold and state ~= 'held') then
    answer = take(ttl, fences)
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
