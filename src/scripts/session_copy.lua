--[[ session_copy: the copy of a session that is moving here, as a user's. The same handle again changes nothing.
  KEYS[1]  session      hash, as in session_create
  KEYS[2]  index        of the user, as in session_create
  ARGV[1]  deadline_ms  the server's time after which this must not run any more
  ARGV[2]  handle
  ARGV[3]  user
  ARGV[4..]             all fields of the hash that it was, and their values
  Returns  {'copied', 0, now_ms} | {'late', 0, now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local call, key, format = redis.call, KEYS[1], 'session 1'
--#include server_time
local was, deadline = {}, tonumber(ARGV[1])
for i = 4, #ARGV, 2 do was[ARGV[i]] = ARGV[i + 1] end
local ends, ttl = tonumber(was.e), tonumber(was.t)
if was.v ~= format then return redis.error_reply('LOCKSTEP_FORMAT this is not in the format "' .. format .. '"') end
if not (deadline and ends and ttl and #ARGV % 2 == 1) then return redis.error_reply('LOCKSTEP_ARGUMENT deadline_ms: a time; fields and values of a session') end
if call('EXISTS', key) == 1 then return {'copied', 0, now} end
if now > deadline then return {'late', 0, now} end
for i = 4, #ARGV, 2 do call('HSET', key, ARGV[i], ARGV[i + 1]) end
call('HSET', key, 'u', ARGV[3])
call('PEXPIRE', key, string.format('%.0f', math.max(math.min(ttl, ends - now), 1)))
call('ZADD', KEYS[2], was.e, ARGV[2])
if call('PTTL', KEYS[2]) < ends - now then call('PEXPIREAT', KEYS[2], was.e) end
return {'copied', 0, now}
