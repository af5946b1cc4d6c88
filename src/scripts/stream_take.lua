#!lua flags=allow-oom
--[[ stream_take: what this consumer was given but does not have: the reply was lost, or an earlier process of its name died.
  KEYS[1]  stream    stream
  KEYS[2]  taken     hash, as in stream_recover
  ARGV[1]  group     of consumers
  ARGV[2]  consumer  who asks
  ARGV[3]  budget    how many bytes of entries at most, but one entry in any case
  ARGV[4]  limit     an entry of more bytes is not sent
  ARGV[5..]  entries  of each the id and how often it is delivered with this; 0: as often as the server says
  Returns  {how many of them it looked at, id, deliveries, counted, {field, value, ...} or its size, ...} for those that are pending for this consumer;
           counted: 0 if it is not yet (stream_begin)
  Errors   NOGROUP (nothing was written)
]]
local call, group, consumer, found = redis.call, ARGV[1], ARGV[2], {0}
local left, limit = tonumber(ARGV[3]), tonumber(ARGV[4])
for i = 5, #ARGV, 2 do
    local id, deliveries = ARGV[i], tonumber(ARGV[i + 1])
    local pending = call('XPENDING', KEYS[1], group, id, id, 1, consumer)[1]
    if pending then
        local entry = call('XRANGE', KEYS[1], id, id)[1]
        if entry then
            local fields, size = entry[2], 0
            for _, text in ipairs(fields) do size = size + #text + 16 end
            if size > limit then
                fields = size
            elseif size > left and #found > 1 then
                break
            else
                left = left - size
            end
            local counted = 1
            if deliveries > 0 then
                call('HDEL', KEYS[2], id)
            else
                deliveries, counted = pending[4], 1 - call('HEXISTS', KEYS[2], id)
            end
            call('XCLAIM', KEYS[1], group, consumer, 0, id, 'RETRYCOUNT', deliveries, 'JUSTID')  -- it is young again
            for _, part in ipairs({id, deliveries + 1 - counted, counted, fields}) do found[#found + 1] = part end
        else
            call('XACK', KEYS[1], group, id)  -- trimmed away meanwhile
        end
    end
    found[1] = found[1] + 1
end
return found
