--[[ stream_recover: take entries that were given back and may be taken now, then those whose consumer has not been heard of for so long.
  KEYS[1]  stream    stream
  KEYS[2]  taken     hash: ids of what was taken over and has not begun; it expires a day after the last
  KEYS[3]  returned  sorted set, as in stream_return
  ARGV[1]  group     of consumers
  ARGV[2]  consumer  that takes them
  ARGV[3]  idle_ms   for how long nobody may have renewed them
  ARGV[4]  cursor    where the last look ended; '0-0': at the beginning
  ARGV[5]  count     how many at most, an integer of 1 to 1000
  ARGV[6]  budget    how many bytes of entries at most, but one entry in any case
  ARGV[7]  limit     an entry of more bytes is not sent
  ARGV[8]  patience  for how many ms what was given back is left to others first
  Returns  {next cursor, in how many ms the next of those given back is taken (-1: there is none), id, deliveries, 1 (had been given back) | 0,
           {field, value, ...} or its size, ...}; this delivery is not counted: it is when the entry begins (stream_begin)
  Errors   LOCKSTEP_ARGUMENT, NOGROUP (nothing was written)
]]
local call, group, consumer, parked = redis.call, ARGV[1], ARGV[2], 'lockstep:returned'
local count, budget, limit = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
if not count or count < 1 or count > 1000 then return redis.error_reply('LOCKSTEP_ARGUMENT count: 1 to 1000') end
local most_seen = 10 * count
local pending = call('XPENDING', KEYS[1], group, ARGV[4] == '0-0' and '-' or '(' .. ARGV[4], '+', most_seen)
local time = call('TIME')
local due, found, taken, bytes = time[1] * 1000 + math.floor(time[2] / 1000) - ARGV[8], {'0-0', -1}, 0, 0

-- False: there is no room for it.
local function take(id, deliveries, was_returned)
    if taken == count then return false end
    local entry = call('XRANGE', KEYS[1], id, id)[1]
    if not entry then
        call('XACK', KEYS[1], group, id)  -- trimmed away meanwhile
        return true
    end
    local fields, size = entry[2], 0
    for _, text in ipairs(fields) do size = size + #text + 16 end
    if size > limit then
        fields = size
    elseif taken > 0 and bytes + size > budget then
        return false
    else
        bytes = bytes + size
    end
    call('XCLAIM', KEYS[1], group, consumer, 0, id, 'JUSTID')
    call('HSET', KEYS[2], id, '')
    taken = taken + 1
    for _, part in ipairs({id, deliveries, was_returned, fields}) do found[#found + 1] = part end
    return true
end

for _, id in ipairs(call('ZRANGE', KEYS[3], '-inf', due, 'BYSCORE', 'LIMIT', 0, count)) do
    local entry = call('XPENDING', KEYS[1], group, id, id, 1)[1]
    if entry and entry[2] == parked and not take(id, entry[4], 1) then break end
    call('ZREM', KEYS[3], id)
end
local next_due = call('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES')[2]
if next_due then
    found[2] = math.max(0, next_due - due)
elseif taken > 0 and not call('XPENDING', KEYS[1], group, '-', '+', 1, parked)[1] then
    call('XGROUP', 'DELCONSUMER', KEYS[1], group, parked)
end

if #pending == most_seen then found[1] = pending[most_seen][1] end
for i, entry in ipairs(pending) do
    local id, owner, idle = entry[1], entry[2], entry[3]
    if idle >= tonumber(ARGV[3]) then
        -- Unless it was taken above, or waits until it may be taken.
        if call('XPENDING', KEYS[1], group, 'IDLE', ARGV[3], id, id, 1, owner)[1]
            and not (owner == parked and call('ZSCORE', KEYS[3], id)) and not take(id, entry[4], 0) then
            found[1] = i > 1 and pending[i - 1][1] or ARGV[4]
            break
        end
    elseif idle == 0 and call('XPENDING', KEYS[1], group, id, id, 1, owner)[1] then
        -- Given just now, or later by a clock that was set back since: from now on, then, or it would be nobody's until that clock has caught up.
        call('XCLAIM', KEYS[1], group, owner, 0, id, 'IDLE', owner == parked and 1 or 0, 'JUSTID')
        if owner == parked then
            call('ZADD', KEYS[3], 'XX', string.format('%.0f', due), id)
            found[2] = 0
        end
    end
end
if taken > 0 then call('PEXPIRE', KEYS[2], 86400000) end
-- What has gone without having begun (trimmed, given up) leaves its id behind: some of them are looked at each time.
for _, id in ipairs(call('HRANDFIELD', KEYS[2], 20)) do
    if not call('XPENDING', KEYS[1], group, id, id, 1)[1] then call('HDEL', KEYS[2], id) end
end
return found
