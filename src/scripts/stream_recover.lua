--[[ stream_recover: take over entries whose consumer has not been heard of for so long.
  KEYS[1]  stream    stream
  KEYS[2]  taken     hash: ids of what was taken over and has not begun; it expires a day after the last
  ARGV[1]  group     of consumers
  ARGV[2]  consumer  who takes them
  ARGV[3]  idle_ms   how long nobody may have renewed them
  ARGV[4]  cursor    where the last look ended; '0-0': at the beginning
  ARGV[5]  count     how many at most, an integer of 1 to 1000
  Returns  {next cursor, id, deliveries, {field, value, ...}, ...}; this one is not counted: it is when the entry begins (stream_begin)
  Errors   LOCKSTEP_ARGUMENT, NOGROUP (nothing was written)
]]
local call, group = redis.call, ARGV[1]
local count = tonumber(ARGV[5])
if not count or count < 1 or count > 1000 then return redis.error_reply('LOCKSTEP_ARGUMENT count: 1 to 1000') end
-- Idle for no time at all: given just now, or later by a clock that was set back since. From now on, then, or it would be nobody's until that
-- clock has caught up.
for _, pending in ipairs(call('XPENDING', KEYS[1], group, ARGV[4], '+', 10 * count)) do
    if pending[3] == 0 then call('XCLAIM', KEYS[1], group, pending[2], 0, pending[1], 'JUSTID') end
end
-- It looks at ten times as many at most, and drops those that are in the stream no more.
local claimed = call('XAUTOCLAIM', KEYS[1], group, ARGV[2], ARGV[3], ARGV[4], 'COUNT', count, 'JUSTID')
local found = {claimed[1]}
for _, id in ipairs(claimed[2]) do
    local pending, entry = call('XPENDING', KEYS[1], group, id, id, 1)[1], call('XRANGE', KEYS[1], id, id)[1]
    found[#found + 1], found[#found + 2], found[#found + 3] = id, pending[4], entry[2]
    call('HSET', KEYS[2], id, '')
end
if #claimed[2] > 0 then call('PEXPIRE', KEYS[2], 86400000) end
-- What has gone without having begun (trimmed, given up) leaves its id behind: some of them are looked at each time.
for _, id in ipairs(call('HRANDFIELD', KEYS[2], 20)) do
    if not call('XPENDING', KEYS[1], group, id, id, 1)[1] then call('HDEL', KEYS[2], id) end
end
return found
