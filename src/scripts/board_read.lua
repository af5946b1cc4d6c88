--[[ board_read: a part of a leaderboard, best first.
  KEYS[1]  board   sorted set, as in board_change
  KEYS[2]  about   hash, as in board_change
  ARGV[1]  format  'board 1 <ties> <sign>'
  ARGV[2]  what    'places' (from first to last, from 0, negative: from the end) | 'around' (a member, and so many on each side) | 'scores'
                   (times sign, from first to last, inf or -inf: no limit; then skip and count) | 'count' (of those scores)
  ARGV[3]  first   place, member or score
  ARGV[4]  last    place, how many or score
  ARGV[5]  skip    'scores' only
  ARGV[6]  count   'scores' only, -1: all
  ARGV[7]  from_ms   the period that is asked for, if it is the server's
  ARGV[8]  until_ms  and its end, 0: any
  Returns  {-1, now_ms} (the server's time is another) | {size, place of the first, 'member', 'score', ...}, members and scores as they are kept; for 'count' {size, number}
  Errors   LOCKSTEP_FORMAT
]]
local call, board, key, format = redis.call, KEYS[1], KEYS[2], ARGV[1]
local was = call('HMGET', key, 'v')
--#include state_hash
--#include server_time
if ARGV[8] ~= '0' and (now < tonumber(ARGV[7]) or now >= tonumber(ARGV[8])) then return {-1, now} end
local what, first, last = ARGV[2], ARGV[3], ARGV[4]
local size = call('ZCARD', board)
if what == 'count' then return {size, call('ZCOUNT', board, first, last)} end
local found, place
if what == 'scores' then
    found = call('ZRANGE', board, first, last, 'BYSCORE', 'LIMIT', ARGV[5], ARGV[6], 'WITHSCORES')
    place = found[1] and call('ZRANK', board, found[1]) or 0
else
    place, last = tonumber(first), tonumber(last)
    if what == 'around' then
        local id = first
        if string.find(format, ' earlier ', 1, true) then id = (call('HGET', key, 'm' .. first) or '') .. first end
        local middle = call('ZRANK', board, id)
        if not middle then return {size, 0} end
        place, last = math.max(middle - last, 0), middle + last
    end
    if place < 0 then place = math.max(size + place, 0) end
    found = call('ZRANGE', board, place, last, 'WITHSCORES')
end
local answer = {size, place}
for i = 1, #found do answer[i + 2] = found[i] end
return answer
