--[[ steal_purge: empty a lane, and what is put off.
  KEYS[1]  lane   list
  KEYS[2]  lanes  sorted set
  KEYS[3]  later  sorted set
  ARGV[1]  lane   its name
  Returns  how many items were removed
]]
local call = redis.call
local removed = call('LLEN', KEYS[1]) + call('ZCARD', KEYS[3])
call('UNLINK', KEYS[1], KEYS[3])
call('ZREM', KEYS[2], ARGV[1])
return removed
