--[[ stream_sweep: forget consumers that have not been heard of for long and have nothing pending, a few at a time, and drop old dead letters.
  KEYS[1]  stream      stream
  KEYS[2]  dead        stream of dead letters
  ARGV[1]  group       of consumers
  ARGV[2]  consumer    who asks, and stays
  ARGV[3]  idle_ms     how long is long, an integer
  ARGV[4]  max_length  of the dead letters, about; 0: unlimited
  ARGV[5]  retention   how long dead letters are kept, in ms; 0: for ever
  Returns  {how many consumers were forgotten, how many dead letters were dropped}
  Errors   NOGROUP (nothing was written)
]]
--#include stream_drop_old
local call, group, gone, idle_ms = redis.call, ARGV[1], 0, tonumber(ARGV[3])
for _, one in ipairs(call('XINFO', 'CONSUMERS', KEYS[1], group)) do
    local about = {}
    for i = 1, #one, 2 do about[one[i]] = one[i + 1] end
    if about.name ~= ARGV[2] and about.pending == 0 and about.idle > idle_ms and gone < 20 then
        call('XGROUP', 'DELCONSUMER', KEYS[1], group, about.name)
        gone = gone + 1
    end
end
return {gone, drop_old(KEYS[2], tonumber(ARGV[5]), tonumber(ARGV[4]))}
