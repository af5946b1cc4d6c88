--[[ session_update: set and erase fields of a session, all at once and once.
  KEYS[1]  session   hash, as in session_create
  ARGV[1]  write     an id of this write, no spaces; the same again changes nothing. The latest 8 are known.
  ARGV[2]  expected  the version, 0: any
  ARGV[3]  count     how many are set
  ARGV[4..]          fields and values, then the fields to erase
  Returns  {'changed', version} | {'conflict', version} | {'absent', 0}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local call, key, format = redis.call, KEYS[1], 'session 1'
local was = call('HMGET', key, 'v', 'n', 'u', 'w', 'e', 't')
--#include state_hash
if not was[1] then return {'absent', 0} end
local expected, count = tonumber(ARGV[2]), tonumber(ARGV[3])
if not (expected and count and #ARGV >= 3 + 2 * count) then return redis.error_reply('LOCKSTEP_ARGUMENT expected, count: numbers; fields and values') end
--#include server_time
local version = tonumber(was[2])
if string.find(was[4], ARGV[1] .. ' ', 1, true) then return {'changed', version} end
if expected > 0 and expected ~= version then return {'conflict', version} end
local function renew()
--#include session_renew
end
if renew() then return {'absent', 0} end
version = math.max(version + 1, us)
local writes = ARGV[1] .. ' ' .. (string.match(was[4], '^' .. string.rep('%S+ ', 7)) or was[4])
call('HSET', key, 'n', string.format('%.0f', version), 'w', writes)
for i = 4, 3 + 2 * count, 2 do call('HSET', key, 'f' .. ARGV[i], ARGV[i + 1]) end
for i = 4 + 2 * count, #ARGV do call('HDEL', key, 'f' .. ARGV[i]) end
return {'changed', version}
