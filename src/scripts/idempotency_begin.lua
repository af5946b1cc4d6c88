--[[ idempotency_begin: may this be done, or was it done, or is somebody at it? The same token again gets the same answer.
  KEYS[1]  record    string: 'done', or 'by <token>' while somebody is at it
  ARGV[1]  token     of whoever asks
  ARGV[2]  lease_ms  how long nobody else may do it, an integer of at least 1
  Returns  'yours' | 'busy' | 'done'
]]
local by = 'by ' .. ARGV[1]
if redis.call('SET', KEYS[1], by, 'NX', 'PX', ARGV[2]) then return 'yours' end
local found = redis.call('GET', KEYS[1])
if found == by then return 'yours' end
return found == 'done' and 'done' or 'busy'
