#!lua flags=allow-oom
--[[ pool_release: give permits back and offer them to the next in line; or stop waiting for them (cancel). Asked again by a hold
  that has neither, it looks whether offers or leases have run out, and passes them on.
  KEYS[1]  pool     hash
  ARGV[1]  hold     id of the hold
  ARGV[2]  rules    as in lock_acquire
  ARGV[3]  leaving  if '1', also tell the first that still waits: the caller will not be there to look after the claim window
  ARGV[4]  unused   if given: nobody had any use of the hold, so this is how many permits come back if it has used them up
  Returns  1 (released, nobody waited) | {'released', now_ms, first hold it was offered to or '', how many heard (-1: cannot be known)}
           | {'cancelled', now_ms, the same two} | {'gone', now_ms, the same two}; each followed by 1 as in lock_release
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local call, hold, rules = redis.call, ARGV[1], ARGV[2]
-- The short ways when nobody waits: the only hold, or one of several that shares nothing with them. The last one moves into its slot.
local short = call('HMGET', KEYS[1], 'i' .. hold, 'n', 'h', 'v')
local n, head = short[2], short[3]
local index, amount, more = string.match(short[1] or '', '^(%S+) (%S+) %S+ %S+(.*)$')
local is_held = index and short[4] == '4' and not string.find(more, ' offered', 1, true)
if is_held and n == '1' and not head and not ARGV[4] then
    if more == '' then
        call('HDEL', KEYS[1], 'n', 'u', 'o1', 'i' .. hold)
    else
        call('HDEL', KEYS[1], 'n', 'u', 'o1', 'i' .. hold, string.match(more, ' (g%S*)$') or 'n')
    end
    return 1
end
if is_held and not head and not ARGV[4] and not string.find(more, ' g', 1, true) then
    local q = call('HMGET', KEYS[1], 'u', 'o' .. n)
    local set = {'n', n - 1, 'u', (q[1] or 0) - amount}
    if index ~= n then
        local text = call('HGET', KEYS[1], 'i' .. q[2])
        set[5], set[6], set[7], set[8] = 'o' .. index, q[2], 'i' .. q[2], index .. string.match(text, ' .*')
    end
    call('HSET', KEYS[1], unpack(set))
    call('HDEL', KEYS[1], 'o' .. n, 'i' .. hold)
    return 1
end

--#include server_time
-- The usual way when all is taken and others wait: the first of them wants as much as this one has, hears of it, and gets its place.
-- What the rest below would do, without the price of it.
local channel = string.match(rules, '^%d+ %d+ (.+)$')
if is_held and head and channel and not string.find(more, '[cg]') and not ARGV[3] then
    local q = call('HMGET', KEYS[1], 'b', 'x', 'm', 'c', 'u', 'l', 'q' .. head, 'e', 'j')
    local next, want, links = string.match(q[7], '^(%S+) ?(%S*) ?(%S*)')
    local window, rest = string.match(want, '^(%d+)@(.*)$')
    window, want = window or '500', rest or want
    local client = string.match(next, '^[^.]+')
    if q[1] and q[1] + 0 > now and now + window <= q[2] + 0 and q[4] == q[5] and links == '' and (want == '' and '1' or want) == amount
        and not (q[3] and string.find(q[3], ' ' .. client .. ' ', 1, true)) then
        local publish = string.find(channel, '{', 1, true) and 'SPUBLISH' or 'PUBLISH'
        local heard = redis.pcall(publish, channel .. client, next)
        if type(heard) == 'number' and heard > 0 then
            local number = string.format('%d', (q[9] or 0) + 1)
            local text = index .. ' ' .. amount .. ' ' .. window .. ' 0 ' .. now + window .. ' offered ' .. number
            local first, offers_end = string.match(q[8] or '1 -', '^(%d+) (.+)$')
            if offers_end == '-' or offers_end + 0 > now + window then offers_end = now + window end
            call('HSET', KEYS[1], 'o' .. index, next, 'i' .. next, text, 'y' .. number, next, 'e', first .. ' ' .. offers_end, 'j', number,
                 'h', head + 1)
            call('HDEL', KEYS[1], 'i' .. hold, 'q' .. head, 'w' .. next, unpack(head == q[6] and {'h', 'l', 'z', 'm'} or {}))
            return {'released', now, next, heard}
        end
    end
end
--#include pool_state
--#include pool_upgrade
--#include queue
--#include next_in_line
--#include pool_holds
--#include pool_settle
--#include pool_pass_on
local answer = {'gone', now}
if mine then
    if ARGV[4] and mine.mode == 'c' and mine.state == 'held' then count = count + ARGV[4] end
    drop(mine)
    answer = {'released', now, '', 0}
elseif ticket then
    leave(ticket)
    answer = {'cancelled', now}
end
settle()
local first, heard = pass_on()
answer[3], answer[4] = first, heard
if more then answer[5] = 1 end
if ARGV[3] == '1' then
--#include tell_second
end
commit_all()
return answer
