--[[ redlock_fence: write down the fence of a hold, if it still has its keys and the fence is larger than all before.
  KEYS[1..]  the keys, and behind them, in the same order, the key of each one's fence
  ARGV[1]    token  which must be in all of them
  ARGV[2]    fence  an integer below 2^53; the same again is fine: sent twice, it gives the same answer
  Returns    {1} | {0, fence} not written; the largest that is there, as text, or '0' where the token is not there any more
]]
local count = #KEYS / 2
local largest = 0
for i = 1, count do
    if redis.pcall('GET', KEYS[i]) ~= ARGV[1] then return {0, '0'} end
    local before = redis.call('GET', KEYS[count + i]) or '0'
    if before ~= ARGV[2] then largest = math.max(largest, tonumber(before) or 0) end
end
if largest >= tonumber(ARGV[2]) then return {0, string.format('%.0f', largest)} end
for i = count + 1, #KEYS do redis.call('SET', KEYS[i], ARGV[2]) end
return {1}
