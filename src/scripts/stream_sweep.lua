--[[ stream_sweep: forget consumers that have not been heard of for long and have nothing pending, a few at a time.
  KEYS[1]  stream    stream
  ARGV[1]  group     of consumers
  ARGV[2]  consumer  who asks, and stays
  ARGV[3]  idle_ms   how long is long, an integer
  Returns  how many were forgotten
  Errors   NOGROUP (nothing was written)
]]
local call, group, gone, idle_ms = redis.call, ARGV[1], 0, tonumber(ARGV[3])
for _, one in ipairs(call('XINFO', 'CONSUMERS', KEYS[1], group)) do
    local about = {}
    for i = 1, #one, 2 do about[one[i]] = one[i + 1] end
    if about.name ~= ARGV[2] and about.pending == 0 and about.idle > idle_ms and gone < 20 then
        call('XGROUP', 'DELCONSUMER', KEYS[1], group, about.name)
        gone = gone + 1
    end
end
return gone
