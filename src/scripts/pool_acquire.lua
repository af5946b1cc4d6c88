--[[ pool_acquire: take permits of a pool, or queue for them. The same hold again gets the same answer.
  KEYS[1]  pool         hash
  ARGV[1]  hold         id of this hold: '<client>.<n>', no spaces
  ARGV[2]  ttl_ms       length of the lease, an integer from 1 to 10^12
  ARGV[3]  deadline_ms  the server's time after which this must not run any more
  ARGV[4]  amount       how many permits, 0 to 10^12; 0 waits for the pool to be created, and for nobody else
  ARGV[5]  waiters      how many may wait; 0: do not wait
  ARGV[6]  rules        as in lock_acquire
  ARGV[7]  count        how many permits the pool gets if it is new, at most 12 digits; '': somebody else has to create it
  ARGV[8]  mode         '' | 'consume': the permits are used up | 'group <owner id>': enters beside the owner's other holds
  Returns  fence (alone: granted for ttl_ms, and the fence is also the server's time in µs)
           | {'granted', fence, 1, left_ms, now_ms} | {'queued', position at most, look_again_ms, now_ms, 1 if its place is new}
           | {'busy', look_again_ms, now_ms} | {'late', now_ms}; look_again_ms 0 as in lock_acquire
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT, LOCKSTEP_WAITERS (nothing was written). An argument is checked where it is used.
           LOCKSTEP_ARGUMENT also when amount is more than there are, whether it asks first or was turned away by a resize.
           LOCKSTEP_NOT_FOUND the pool is not created, or not any longer, and the call is not one of those that wait for it: amount 0 and 'consume'.
]]
local call, hold, rules = redis.call, ARGV[1], ARGV[6]
local ttl, deadline, amount = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
if not (ttl and ttl >= 1 and ttl <= 1e12 and deadline and amount and amount <= 1e12 and not string.find(ARGV[2] .. ARGV[4], '%D')
        and string.find(hold, '.', 2, true)) then
    return redis.error_reply('LOCKSTEP_ARGUMENT hold: <client>.<n>, ttl_ms: 1 to 10^12, deadline_ms: a number, amount: 0 to 10^12')
end
local time, q = call('TIME'), call('HMGET', KEYS[1], 'v', 'c', 'u', 'n', 'b', 't', 'x', 'h', 'i' .. hold)
local fence = time[1] .. time[2]
if #time[2] < 6 then fence = time[1] .. string.sub('00000' .. time[2], -6) end
local us = fence + 0
local now = (us - us % 1000) / 1000
-- The short way: enough is free, nobody waits, nobody's lease is over, and this one ends after the first of the others. What TIME and
-- the caller said is written as it is, since formatting numbers is what costs here. A group may have others to look for if n is there.
if q[5] and q[6] and q[2] and q[1] == '4' and not q[8] and not q[9]
    and (ARGV[8] == '' or not q[4] and string.find(ARGV[8], '^group [^ ]+$')) then
    local used, index, first = q[3] and q[3] + amount or ARGV[4], q[4] and q[4] + 1 or '1', q[5] + 0
    if used + 0 <= q[2] + 0 and now < first and first <= now + ttl and us > q[6] + 0 and now + ttl <= q[7] + 0 and now <= deadline then
        local text = index .. ' ' .. ARGV[4] .. ' ' .. ARGV[2] .. ' ' .. fence
        if ARGV[8] == '' then
            call('HSET', KEYS[1], 'o' .. index, hold, 'i' .. hold, text, 'n', index, 'u', used, 't', fence)
        else
            local group = 'g' .. string.sub(ARGV[8], 7)
            call('HSET', KEYS[1], 'o' .. index, hold, 'i' .. hold, text .. ' ' .. now + ttl .. ' held ' .. group, group, '1 1 ' .. fence,
                 'n', index, 'u', used, 't', fence)
        end
        return us
    end
end

local limit, owner = tonumber(ARGV[5]), string.match(ARGV[8], '^group ([^ ]+)$')
local mode = owner and 'g' .. owner or ({[''] = '', consume = 'c'})[ARGV[8]]
if not limit or deadline ~= deadline or not mode or #ARGV[7] > 12 or string.find(ARGV[7], '%D') then
    return redis.error_reply('LOCKSTEP_ARGUMENT waiters, deadline_ms, count: numbers, mode: consume, group <owner id> or nothing')
end
-- The usual way when others are before us: nothing is free, nobody's lease is over, and nothing is to be put right. Only the rest below
-- knows every rule; this is what it would do, without the price of reading and defining it all.
local left = (q[5] or 0) - now
if left > 0 and left <= ttl and q[1] == '4' and q[3] and q[3] + 0 >= q[2] + 0 and amount > 0 and amount <= q[2] + 0
    and mode == '' and not q[9] and now + ttl <= q[7] + 0 and now <= deadline and string.find(hold, '^[^ .]+%.[^ ]+$') then
    local w = call('HMGET', KEYS[1], 'l', 'z', 'm', 'w' .. hold, 'e')
    local offers_end = w[5] and tonumber(string.match(w[5], ' (%d+)$'))
    if offers_end then left = math.min(left, offers_end - now) end
    local waiting = q[8] and w[1] - q[8] - (w[2] or 0) + 1 or 0
    local client, window = string.match(hold, '^[^ .]+'), string.match(rules, '^%d+')
    if not (w[3] and string.find(w[3], ' ' .. client .. ' ', 1, true)) and not w[4] and waiting < limit and window and left > 0 then
        local ticket = string.format('%d', (w[1] or 0) + 1)
        local word = (window ~= '500' and window .. '@' or '') .. (amount ~= 1 and ARGV[4] or '')
        local text = word == '' and hold or hold .. ' ' .. word
        call('HSET', KEYS[1], 'q' .. ticket, text, 'w' .. hold, ticket, 'l', ticket, 'h', q[8] or ticket)
        return {'queued', waiting + 1, left, now, 1}
    end
end
--#include pool_state
--#include pool_upgrade
if now > deadline then return {'late', now} end
--#include queue
--#include next_in_line
--#include pool_holds
--#include pool_settle
--#include pool_pass_on
local want, trying, new = amount .. mode, limit == 0 and not ticket, not ticket
trust()
settle()
if not count and ARGV[7] ~= '' then count, need = tonumber(ARGV[7]), math.max(need, now) end
if not mine then
    local missing = not count and amount > 0 and mode ~= 'c'
    if missing or too_much(want) then
        if ticket then  -- an earlier version let it wait, or its resize let it stay
            leave(ticket)
            pass_on()
            commit_all()
        end
        if missing then return redis.error_reply('LOCKSTEP_NOT_FOUND it does not exist: create it first') end
        return redis.error_reply('LOCKSTEP_ARGUMENT ' .. amount .. ' permits are wanted, and there are only ' .. count)
    end
    if fits(want) and (not head or amount == 0 or has_companion(mode)) then
        if ticket then leave(ticket) end
        add(hold, want, 'asked', ttl)
    elseif not ticket and (not trying or fits(want)) then
        if not trying and head and tail - head + 1 - holes >= limit then
            return redis.error_reply('LOCKSTEP_WAITERS too many wait for this pool')
        end
        join(want ~= '1' and want or nil)
    end
end
pass_on()
local answer
if mine and mine.state ~= 'held' then
    answer = take(ttl)
elseif mine then
    answer = {'granted', mine.fence, 1, mine.ends - now, now}
elseif trying then
    if ticket then leave(ticket) end
    answer = {'busy', look_again(ttl), now}
else
    need = math.max(need, now + ttl)
    answer = {'queued', place(), look_again(ttl), now, new and 1 or 0}
end
commit_all()
return answer
