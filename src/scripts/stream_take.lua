#!lua flags=allow-oom
--[[ stream_take: what this consumer was given but does not have: the reply was lost, or an earlier process of its name died.
  KEYS[1]  stream    stream
  KEYS[2]  taken     hash, as in stream_recover
  ARGV[1]  group     of consumers
  ARGV[2]  consumer  who asks
  ARGV[3..]  entries  of each the id and how often it is delivered with this; 0: as often as the server says
  Returns  {id, deliveries, counted, {field, value, ...}, ...} for those that are pending for this consumer; counted: 0 if it is not yet (stream_begin)
  Errors   NOGROUP (nothing was written)
]]
local call, group, consumer, found = redis.call, ARGV[1], ARGV[2], {}
for i = 3, #ARGV, 2 do
    local id, deliveries = ARGV[i], tonumber(ARGV[i + 1])
    local pending = call('XPENDING', KEYS[1], group, id, id, 1, consumer)[1]
    if pending then
        local entry = call('XRANGE', KEYS[1], id, id)[1]
        if entry then
            local counted = 1
            if deliveries > 0 then
                call('HDEL', KEYS[2], id)
            else
                deliveries, counted = pending[4], 1 - call('HEXISTS', KEYS[2], id)
            end
            call('XCLAIM', KEYS[1], group, consumer, 0, id, 'RETRYCOUNT', deliveries, 'JUSTID')  -- it is young again
            for _, part in ipairs({id, deliveries + 1 - counted, counted, entry[2]}) do found[#found + 1] = part end
        else
            call('XACK', KEYS[1], group, id)  -- trimmed away meanwhile
        end
    end
end
return found
