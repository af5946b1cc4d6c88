--[[ redlock_acquire: put a token into some keys, all or none; or say who has them, and tell that one who waits.
  KEYS[1..]  the keys; with fences twice as many: behind them, in the same order, the key of each one's fence
  ARGV[1]    token     a key that has it already counts as free: sent again, this gives the same answer
  ARGV[2]    ttl_ms    how long they are kept, an integer of at least 1
  ARGV[3]    fenced    '1': with fences | '0'
  ARGV[4]    channel   what the names of processes' channels begin with; '': tell nobody
  ARGV[5]    waiters   what the holder is told, behind its token
  Returns    {1} | {1, fence, now_us} the largest fence so far, as text, and the server's time, as text
             | {0, left_ms, heard, token} of the first key that is taken; left_ms below 0: it does not expire; heard: how many were told
]]
local count = ARGV[3] == '1' and #KEYS / 2 or #KEYS
for i = 1, count do
    local token = redis.pcall('GET', KEYS[i])
    if token and token ~= ARGV[1] then
        if type(token) == 'table' then token = '' end  -- something else than a lock
        local process = string.match(token, '^lockstep:([%w_-]+)%.')
        local heard = 0
        if process and ARGV[4] ~= '' then
            local told = redis.pcall('PUBLISH', ARGV[4] .. process, 'w ' .. token .. ' ' .. ARGV[5])
            if type(told) == 'number' then heard = told end
        end
        return {0, redis.call('PTTL', KEYS[i]), heard, token}
    end
end
for i = 1, count do redis.call('SET', KEYS[i], ARGV[1], 'PX', ARGV[2]) end
if ARGV[3] ~= '1' then return {1} end
local fence = 0
for i = count + 1, #KEYS do fence = math.max(fence, tonumber(redis.call('GET', KEYS[i]) or '0') or 0) end
local time = redis.call('TIME')
return {1, string.format('%.0f', fence), string.format('%.0f', time[1] * 1000000 + time[2])}
