#!lua flags=allow-oom
--[[ lock_release: give the lock back and offer it to the next in line; or stop waiting for it (cancel). Asked again by a hold that
  has neither, it looks whether an offer or a lease has run out, and passes that on.
  KEYS[1]  lock     hash
  ARGV[1]  hold     id of the hold
  ARGV[2]  rules    as in lock_acquire
  ARGV[3]  leaving  if given, also tell the first that still waits: the caller will not be there to look after the claim window
  Returns  1 (released, nobody waited) | {'released', now_ms, hold it was offered to or '', how many heard (-1: cannot be known)}
           | {'cancelled', now_ms[, the same two]} | {'gone', now_ms[, the same two]}; each followed by 1 if not all who are gone are
           out of the way: the caller asks again at once
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local call, hold, rules = redis.call, ARGV[1], ARGV[2]
local short = call('HGET', KEYS[1], 'o')
if short == hold and hold ~= '*' then return call('HDEL', KEYS[1], 'o') end

local time = call('TIME')
local us = time[1] * 1000000 + time[2]
local now = (us - us % 1000) / 1000
-- The usual way when others wait: the first of them hears of it. What the rest below would do, without the price of it.
local channel = string.match(rules, '^%d+ %d+ (.+)$')
if short == '*' and channel and not ARGV[3] then
    local q = call('HMGET', KEYS[1], 'v', 'p', 'h', 'l', 'm', 'x')
    local head = q[3]
    if q[1] == '3' and q[2] == hold and head then
        local text = call('HGET', KEYS[1], 'q' .. head)
        local client = string.match(text, '^([^. ]+)%.[^ ]+$')
        local next, window = text, '500'
        if not client then next, client, window = string.match(text, '^(([^. ]+)%.[^ ]+) (%d+)@$') end
        if client and (now + window > q[6] + 0 or q[5] and string.find(q[5], ' ' .. client .. ' ', 1, true)) then client = nil end
        local publish = string.find(channel, '{', 1, true) and 'SPUBLISH' or 'PUBLISH'
        local heard = client and redis.pcall(publish, channel .. client, next)
        if type(heard) == 'number' and heard > 0 then
            if head == q[4] then
                call('HSET', KEYS[1], 'p', next, 's', 'offered', 'e', now + window, 'd', window)
                call('HDEL', KEYS[1], 'r', 'q' .. head, 'w' .. next, 'h', 'l', 'z', 'm')
            else
                call('HSET', KEYS[1], 'p', next, 's', 'offered', 'e', now + window, 'd', window, 'h', head + 1)
                call('HDEL', KEYS[1], 'r', 'q' .. head, 'w' .. next)
            end
            return {'released', now, next, heard}
        end
    end
end
--#include lock_state
--#include queue
--#include next_in_line
--#include lock_pass_on
local answer = {'gone', now}
if owner == hold then
    answer, owner = {'released', now, '', 0}, nil
else
    if ticket then
        leave(ticket)
        answer = {'cancelled', now}
    end
    settle()
end
if not owner and head then
    local heard = pass_on()
    answer[3], answer[4] = owner or '', heard
    if more then answer[5] = 1 end
end
if ARGV[3] then
--#include tell_second
end
commit_all()
return answer
