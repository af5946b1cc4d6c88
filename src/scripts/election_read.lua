--[[ election_read: who leads, and who would like to. Changes nothing.
  KEYS[1]  election  hash
  ARGV[1]  '1': also find the highest priority of those who stand in line
  Returns  {now_ms, how many stand in line, the highest priority of them or 0} (nobody leads)
           | {the same three, hold, term, since_ms, left_ms, who}
]]
local call, key = redis.call, KEYS[1]
--#include server_time
local q = call('HMGET', key, 'o', 'p', 's', 'e', 'd', 'f', 'n', 'h', 'l', 'z')
local at, tail, highest = tonumber(q[8]), tonumber(q[9]), 0
local answer = {now, at and tail - at - (q[10] or 0) + 1 or 0, 0}
for _ = 1, at and ARGV[1] == '1' and 1000 or 0 do
    local text = at <= tail and call('HGET', key, 'q' .. at)
    if not text then break end
    local _, before, after, want = string.match(text, '^(%S+) ?(%S*) ?(%S*) ?(%S*)$')
    if after == '' then want, after = before, at + 1 end
    highest = math.max(highest, tonumber(want) or 0)
    at = tonumber(after)
end
answer[3] = highest
if q[1] ~= '*' or q[3] ~= 'held' then return answer end
local left = math.min(q[4] - now, q[5] + 0)  -- further away than it is long: the clock was set back
local hold, since, who = string.match(q[7] or '', '^(%S+) (%S+) (.*)$')
if left <= 0 then return answer end
if hold ~= q[2] then since, who = now, '0 ? ?' end
answer[4], answer[5], answer[6], answer[7], answer[8] = q[2], q[6], tonumber(since), left, who
return answer
