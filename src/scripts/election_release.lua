#!lua flags=allow-oom
--[[ election_release: resign and offer the leadership to the next; or stop standing in line. Otherwise as lock_release.
  KEYS[1]  election  hash
  KEYS[2]  changes   stream
  ARGV[1]  hold      id of the hold
  ARGV[2]  rules     as in lock_acquire
  ARGV[3]  leaving   '1': also tell the first that still waits; ''
  ARGV[4]  why       resigned, or lost: the leader had given up already
  Returns  {'released', now_ms, hold it was offered to or '', how many heard (-1: cannot be known)}
           | {'cancelled', now_ms[, the same two]} | {'gone', now_ms[, the same two]}; each followed by 1 as in lock_release
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local call, hold, rules, why = redis.call, ARGV[1], ARGV[2], ARGV[4]
if why ~= 'resigned' and why ~= 'lost' then return redis.error_reply('LOCKSTEP_ARGUMENT why must be resigned or lost') end
--#include server_time
-- The usual way when others wait and none has a priority: the first of them hears of it. The stream follows with its announcement.
local channel = string.match(rules, '^%d+ %d+ (.+)$')
local q = call('HMGET', KEYS[1], 'v', 'p', 's', 'e', 'h', 'l', 'm', 'x', 'y', 'f', 'n', 'u')
local head = q[5]
if head and channel and q[1] == '3' and q[2] == hold and q[3] == 'held' and q[4] + 0 > now and not q[9] and ARGV[3] == '' then
    local text = call('HGET', KEYS[1], 'q' .. head)
    local client = string.match(text, '^([^. ]+)%.[^ ]+$')
    local next, window = text, '500'
    if not client then next, client, window = string.match(text, '^(([^. ]+)%.[^ ]+) (%d+)@$') end
    if client and (now + window > q[8] + 0 or q[7] and string.find(q[7], ' ' .. client .. ' ', 1, true)) then client = nil end
    local publish = string.find(channel, '{', 1, true) and 'SPUBLISH' or 'PUBLISH'
    local heard = client and redis.pcall(publish, channel .. client, next)
    if type(heard) == 'number' and heard > 0 then
        local changes = (q[12] or '')
            .. string.format('%s %s %.0f %s\n', why, q[10], now, string.match(q[11] or '', '^%S+ %S+ (.*)$') or '0 ? ?')
        if head == q[6] then
            call('HSET', KEYS[1], 'p', next, 's', 'offered', 'e', now + window, 'd', window, 'u', changes)
            call('HDEL', KEYS[1], 'r', 'q' .. head, 'w' .. next, 'h', 'l', 'z', 'm')
        else
            call('HSET', KEYS[1], 'p', next, 's', 'offered', 'e', now + window, 'd', window, 'u', changes, 'h', head + 1)
            call('HDEL', KEYS[1], 'r', 'q' .. head, 'w' .. next)
        end
        return {'released', now, next, heard}
    end
end
--#include lock_state
--#include queue
--#include next_in_line
--#include election_state
local answer = {'gone', now}
if owner == hold then
    if state == 'held' then note_end(ends > now and why or 'lost') end
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
if ARGV[3] == '1' then
--#include tell_second
end
commit_all()
return answer
