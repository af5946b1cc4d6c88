#!lua flags=allow-oom
--[[ stream_renew: this consumer still works on these entries; nobody else is to take them over.
  KEYS[1]  stream     stream
  ARGV[1]  group      of consumers
  ARGV[2]  consumer   who works on them
  ARGV[3..]  entries  of each the id and how often it was delivered; 0: as often as the server says
  Returns  ids of those that are not this consumer's any more
  Errors   NOGROUP (nothing was written)
]]
local call, group, consumer, lost = redis.call, ARGV[1], ARGV[2], {}
for i = 3, #ARGV, 2 do
    local id = ARGV[i]
    if not call('XPENDING', KEYS[1], group, id, id, 1, consumer)[1] then
        lost[#lost + 1] = id
    elseif ARGV[i + 1] == '0' then
        call('XCLAIM', KEYS[1], group, consumer, 0, id, 'JUSTID')
    else
        call('XCLAIM', KEYS[1], group, consumer, 0, id, 'RETRYCOUNT', ARGV[i + 1], 'JUSTID')
    end
end
return lost
