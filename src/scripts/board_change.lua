--[[ board_change: change a member's score on a leaderboard, once, or take it off.
  KEYS[1]  board        sorted set, best first: each score times sign; members as they are, or as '<16 digits><member>' where ties go to the earlier
  KEYS[2]  about        hash: v format, m<member> its 16 digits, n the last of them; and what once.lua keeps
  ARGV[1]  session      as in broadcast_set
  ARGV[2]  sequence     as in broadcast_set
  ARGV[3]  deadline_ms  the server's time after which this must not run any more
  ARGV[4]  rules        as in value_change
  ARGV[5]  from_ms      the period of this board: not counted, but told 'period', if the server's time is another
  ARGV[6]  until_ms     and its end, 0: it has none, and the board stays. Otherwise it stays for the retention after it.
  ARGV[7]  ties         'member' | 'earlier'
  ARGV[8]  sign         -1 (the highest score is best) | 1 (the lowest)
  ARGV[9]  what         'set' | 'add' | 'best' (if it is better, or the first) | 'remove'
  ARGV[10] member
  ARGV[11] score        a number
  Returns  {'changed', rank from 0 (-1: not on it), now_ms, score, 1 or 0 (it is as it was)} (sent again: as it is now) | {'period', 0, now_ms} |
           {'late', 0, now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local board, key, format, session, rules = KEYS[1], KEYS[2], 'board 1 ' .. ARGV[7] .. ' ' .. ARGV[8], ARGV[1], ARGV[4]
--#include checks
--#include state_rules
--#include server_time
local from, ends, sign, what, member, score = whole(ARGV[5], 0, 1e15), whole(ARGV[6], 0, 1e15), tonumber(ARGV[8]), ARGV[9], ARGV[10], tonumber(ARGV[11])
if not (from and ends and (sign == 1 or sign == -1) and score and score == score and math.abs(score) < math.huge and member ~= '') then
    return refuse('from_ms, until_ms: times, sign: -1 or 1, member: not empty, score: a number')
end
local was = call('HMGET', key, 'v', 'a' .. session, 'rf', 'rl', 'm' .. member, 'n', 'rt')
--#include state_hash
local set, del = {}, {}
--#include once
--#include state_write
local earlier = ARGV[7] == 'earlier'
local function standing(id, changed)
    local rank, now_score = id and call('ZRANK', board, id), id and call('ZSCORE', board, id)
    return {'changed', rank or -1, now, rank and string.format('%.17g', sign * now_score) or '0', changed}
end
local id = member
if earlier then id = was[5] and was[5] .. member end
if has_counted(was[2]) then return standing(id, tonumber(answer_of(was[2]))) end
if now > deadline then return {'late', 0, now} end
if ends > 0 and (now < from or now >= ends) then return {'period', 0, now} end
local old = id and call('ZSCORE', board, id)
old = old and sign * old
local new = score
if what == 'add' then new = (old or 0) + score end
if what == 'best' and old and sign * old <= sign * score then new = old end
if what ~= 'remove' and math.abs(new) == math.huge then return refuse('the sum is no number') end
if (what == 'remove' and not old) or (what ~= 'remove' and old == new) then return standing(id, 0) end
set = {'v', format}
local fresh = id
if earlier and what ~= 'remove' then
    -- Who came to this score first: a number that grows, in the server's µs or beyond.
    local order = string.format('%016.0f', math.max((was[6] or 0) + 1, us))
    set[3], set[4], set[5], set[6], fresh = 'n', order, 'm' .. member, order, order .. member
elseif earlier then
    del[1] = 'm' .. member
end
remember(was[2], was[3], was[4], was[7], '1')
local span = ends > 0 and ends - now + retention
write(span)
if what ~= 'remove' then call('ZADD', board, string.format('%.17g', sign * new), fresh) end
if old and (what == 'remove' or fresh ~= id) then call('ZREM', board, id) end
if span then call('PEXPIRE', board, string.format('%.0f', span)) end
if what == 'remove' and call('EXISTS', board) == 0 then call('PEXPIRE', key, string.format('%.0f', retention)) end
return standing(what ~= 'remove' and fresh, 1)
