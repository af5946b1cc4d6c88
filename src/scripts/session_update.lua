--[[ session_update: set and erase fields of a session, all at once and once.
  KEYS[1]  session      hash, as in session_create
  ARGV[1]  deadline_ms  the server's time after which this must not run any more
  ARGV[2]  write        an id of this write, no spaces; the same again changes nothing. The latest 8 are known.
  ARGV[3]  expected     the version, 0: any
  ARGV[4]  count        how many are set
  ARGV[5..]             fields and values, then the fields to erase
  Returns  {'changed', version, now_ms} | {'conflict', version, now_ms} | {'absent', 0, now_ms} | {'late', 0, now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local call, key, format = redis.call, KEYS[1], 'session 1'
local was = call('HMGET', key, 'v', 'n', 'u', 'w', 'e', 't')
--#include state_hash
--#include server_time
local deadline, expected, count = tonumber(ARGV[1]), tonumber(ARGV[3]), tonumber(ARGV[4])
if not (deadline and expected and count and #ARGV >= 4 + 2 * count) then
    return redis.error_reply('LOCKSTEP_ARGUMENT deadline_ms, expected, count: numbers; fields and values')
end
if not was[1] then return {'absent', 0, now} end
local version = tonumber(was[2])
if string.find(was[4], ARGV[2] .. ' ', 1, true) then return {'changed', version, now} end
if now > deadline then return {'late', 0, now} end
if expected > 0 and expected ~= version then return {'conflict', version, now} end
local function renew()
--#include session_renew
end
if renew() then return {'absent', 0, now} end
version = math.max(version + 1, us)
local writes = ARGV[2] .. ' ' .. (string.match(was[4], '^' .. string.rep('%S+ ', 7)) or was[4])
call('HSET', key, 'n', string.format('%.0f', version), 'w', writes)
for i = 5, 4 + 2 * count, 2 do call('HSET', key, 'f' .. ARGV[i], ARGV[i + 1]) end
for i = 5 + 2 * count, #ARGV do call('HDEL', key, 'f' .. ARGV[i]) end
return {'changed', version, now}
