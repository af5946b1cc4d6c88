--[[ job_stage: send a part of a large flow, which nobody sees until job_stage_end. What is not ended within a minute goes by itself.
  KEYS[1]  staged  list
  ARGV[1]  before  how many elements were sent before
  ARGV[2..]        elements, as in include/job_stage_enter.lua
  Returns  how many there are now
]]
local size = redis.call('LLEN', KEYS[1])
if size == ARGV[1] + 0 then
    for i = 2, #ARGV, 500 do size = redis.call('RPUSH', KEYS[1], unpack(ARGV, i, math.min(i + 499, #ARGV))) end
    redis.call('PEXPIRE', KEYS[1], 60000)
end
return size
