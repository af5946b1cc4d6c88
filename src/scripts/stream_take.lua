--[[ stream_take: what this consumer was given but may never have heard of, because the reply was lost.
  KEYS[1]  stream    stream
  ARGV[1]  group     of consumers
  ARGV[2]  consumer  who asks
  ARGV[3..]  ids     of entries
  Returns  {id, deliveries, {field, value, ...}, ...} for those that are pending for this consumer
  Errors   NOGROUP (nothing was written)
]]
local call, group, consumer, found = redis.call, ARGV[1], ARGV[2], {}
for i = 3, #ARGV do
    local id = ARGV[i]
    local pending = call('XPENDING', KEYS[1], group, id, id, 1, consumer)[1]
    if pending then
        local entry = call('XRANGE', KEYS[1], id, id)[1]
        if entry then
            call('XCLAIM', KEYS[1], group, consumer, 0, id, 'JUSTID')  -- it is young again
            found[#found + 1], found[#found + 2], found[#found + 3] = id, pending[4], entry[2]
        else
            call('XACK', KEYS[1], group, id)  -- trimmed away meanwhile
        end
    end
end
return found
