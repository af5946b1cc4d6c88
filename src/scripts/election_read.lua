--[[ election_read: who leads, and who would like to. Changes nothing.
  KEYS[1]  election  hash
  ARGV[1]  '1': also find the highest priority of those who stand in line and can be reached
  ARGV[2]  channel  with '1': what channels of clients begin with
  Returns  {now_ms, how many stand in line, the highest priority of them or 0} (nobody leads)
           | {the same three, hold, term, since_ms, left_ms, who}
]]
local call, key = redis.call, KEYS[1]
--#include server_time
local q = call('HMGET', key, 'o', 'p', 's', 'e', 'd', 'f', 'n', 'h', 'l', 'z', 'm')

-- Somebody who died or hangs would not take it: nobody has to make room for that one.
local function is_there(id)
    local name = string.match(id, '^[^.]+')
    if q[11] and string.find(q[11], ' ' .. name .. ' ', 1, true) then return false end
    local heard = redis.pcall('PUBSUB', string.find(ARGV[2], '{', 1, true) and 'SHARDNUMSUB' or 'NUMSUB', ARGV[2] .. name)
    return heard[2] ~= 0
end

local at, tail, highest = tonumber(q[8]), tonumber(q[9]), 0
local answer = {now, at and tail - at - (q[10] or 0) + 1 or 0, 0}
for _ = 1, at and ARGV[1] == '1' and 1000 or 0 do
    local text = at <= tail and call('HGET', key, 'q' .. at)
    if not text then break end
    local id, before, after, want = string.match(text, '^(%S+) ?(%S*) ?(%S*) ?(%S*)$')
    if after == '' then want, after = before, at + 1 end
    want = string.match(want, '@(.*)$') or want
    if (tonumber(want) or 0) > highest and is_there(id) then highest = tonumber(want) end
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
