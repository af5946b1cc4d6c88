--[[ counter_read: what a counter is now.
  KEYS[1]  counter  hash, as in counter_change
  Returns  the number as text; '0' if there is none
  Errors   LOCKSTEP_FORMAT
]]
local call, key, format = redis.call, KEYS[1], 'counter 1'
local was = call('HMGET', key, 'v', 'n', 'e')
--#include state_hash
--#include server_time
if not was[2] or (was[3] and tonumber(was[3]) <= now) then return '0' end
return was[2]
