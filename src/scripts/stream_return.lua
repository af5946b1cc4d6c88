#!lua flags=allow-oom
--[[ stream_return: give entries back to the group. They wait, as entries of the consumer 'lockstep:returned', until somebody takes them.
  KEYS[1]  stream    stream
  KEYS[2]  returned  sorted set: ids of what was given back, by the time in ms from which it may be taken; it expires a day after the last
  KEYS[3]  taken     hash, as in stream_recover
  ARGV[1]  group     of consumers
  ARGV[2]  consumer  that gives them back
  ARGV[3]  publish   'PUBLISH' or 'SPUBLISH'
  ARGV[4]  channel   where the other consumers listen; they are told after how many ms the first may be taken
  ARGV[5..]  entries  of each the id, how often it counts as delivered, and for how many ms it may not be taken
  Returns  how many were given back; the others are not this consumer's, or were given back already
  Errors   NOGROUP (nothing was written)
]]
local call, group, consumer, parked = redis.call, ARGV[1], ARGV[2], 'lockstep:returned'
local time = call('TIME')
local now, count, first, last = time[1] * 1000 + math.floor(time[2] / 1000), 0, nil, 0
for i = 5, #ARGV, 3 do
    local id, delay = ARGV[i], tonumber(ARGV[i + 2])
    if call('XPENDING', KEYS[1], group, id, id, 1, consumer)[1] then
        -- Idle for a moment from the beginning: 0 means then that the clock was set back since (stream_recover).
        call('XCLAIM', KEYS[1], group, parked, 0, id, 'IDLE', 1, 'RETRYCOUNT', ARGV[i + 1], 'JUSTID')
        call('ZADD', KEYS[2], string.format('%.0f', now + delay), id)
        call('HDEL', KEYS[3], id)
        count, first, last = count + 1, math.min(first or delay, delay), math.max(last, delay)
    end
end
if count > 0 then
    call('PEXPIRE', KEYS[2], string.format('%.0f', math.max(call('PTTL', KEYS[2]), last + 86400000)))
    redis.pcall(ARGV[3], ARGV[4], string.format('%.0f', first))  -- a hint only; a channel may be forbidden
end
return count
