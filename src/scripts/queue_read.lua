--[[ queue_read: who waits for a lock or a pool, in order, for people who look. Changes nothing. include/queue has the format.
  KEYS[1]  lock or pool  hash
  ARGV[1]  how many at most
  Returns  {id, want, id, want, ...}; want is '<permits>[<mode>]', a priority, or '' (a lock's, and priority 0); then perhaps a text that says why it ends there
]]
local largest, left = 32768, 262144  -- bytes
local call, key, found = redis.call, KEYS[1], {}
local q = call('HMGET', key, 'h', 'l')
local at, tail = tonumber(q[1]), tonumber(q[2]) or 0
for i = 1, at and tonumber(ARGV[1]) or 0 do
    local text = at <= tail and call('HGET', key, 'q' .. at)
    if not text then break end
    left = left - #text
    if #text > largest or left < 0 then
        found[#found + 1] = 'from place ' .. i .. ' on its queue is not shown: ' .. (#text > largest and 'that one has ' .. #text .. ' bytes' or 'it is too large')
        break
    end
    local id, before, after, want = string.match(text, '^(%S+) ?(%S*) ?(%S*) ?(%S*)$')
    if not id then break end
    if after == '' then want, after = before, at + 1 end
    found[2 * i - 1], found[2 * i] = id, want
    at = tonumber(after)
end
return found
