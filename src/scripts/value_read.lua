--[[ value_read: what a shared value is now. Changes nothing.
  KEYS[1]  value  hash, as in value_change
  Returns  {version, now_ms, ttl_ms (-1: for good), bytes} | {version (0: nothing is known), now_ms} (there is no value)
  Errors   LOCKSTEP_FORMAT
]]
local call, key, format = redis.call, KEYS[1], 'value 1'
local was = call('HMGET', key, 'v', 'n', 'e', 'd')
--#include state_hash
--#include server_time
local version, ends = tonumber(was[2] or 0), tonumber(was[3])
if not was[4] or (ends and ends <= now) then return {version, now} end
return {version, now, ends and ends - now or -1, was[4]}
