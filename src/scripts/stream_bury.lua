--[[ stream_bury: move an entry to the dead letters, with the reason, and acknowledge it: both or neither, and once however often this is sent.
  KEYS[1]  stream      stream
  KEYS[2]  dead        stream of dead letters
  ARGV[1]  group       of consumers
  ARGV[2]  consumer    who gives it up
  ARGV[3]  id          of the entry
  ARGV[4]  deliveries  how often it was delivered, an integer
  ARGV[5]  reason      for people
  ARGV[6]  max_length  of the dead letters, about; 0: unlimited
  ARGV[7]  retention   how long dead letters are kept, in ms; 0: for ever
  Returns  {1 (it is there) | 0 (it is not this consumer's any more, or was trimmed away: then it is acknowledged only), how many others were dropped}
  Errors   NOGROUP (nothing was written)
]]
--#include stream_drop_old
local call, group, consumer, id = redis.call, ARGV[1], ARGV[2], ARGV[3]
if not call('XPENDING', KEYS[1], group, id, id, 1, consumer)[1] then
    -- Where this is sent again, because its reply was lost, it is among the last. What was written about it ends the fields.
    for _, dead in ipairs(call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 100)) do
        local fields, last = dead[2], #dead[2]
        if fields[last - 8] == id and fields[last - 6] == group and fields[last - 4] == consumer then return {1, 0} end
    end
    return {0, 0}
end
local entry, dropped = call('XRANGE', KEYS[1], id, id)[1], 0
if entry then
    local words = {'XADD', KEYS[2], '*'}
    for _, text in ipairs(entry[2]) do words[#words + 1] = text end
    local about = {'dead.id', id, 'dead.group', group, 'dead.consumer', consumer, 'dead.deliveries', ARGV[4], 'dead.reason', ARGV[5]}
    for _, text in ipairs(about) do words[#words + 1] = text end
    call(unpack(words))
    dropped = drop_old(KEYS[2], tonumber(ARGV[7]), tonumber(ARGV[6]))
end
call('XACK', KEYS[1], group, id)
return {entry and 1 or 0, dropped}
