--[[ session_leave: end a session that was copied elsewhere, unless it has been written to since. The same again is told the same.
  KEYS[1]  session      hash, as in session_create
  KEYS[2]  moved        string: the handle of the copy, for as long as this may be sent again
  KEYS[3]  index        of its user, as in session_create; none: it is nobody's
  ARGV[1]  deadline_ms  the server's time after which this must not run any more
  ARGV[2]  handle
  ARGV[3]  copy         its handle
  ARGV[4]  version      of what was copied
  Returns  {'left', 0, now_ms} | {'conflict', 0, now_ms} (it has another version) | {'absent', 0, now_ms} (there is no such session) | {'late', 0, now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local call, key, format, deadline = redis.call, KEYS[1], 'session 1', tonumber(ARGV[1])
local was = call('HMGET', key, 'v', 'n')
--#include state_hash
--#include server_time
if not deadline then return redis.error_reply('LOCKSTEP_ARGUMENT deadline_ms: a time') end
if not was[1] then return {call('GET', KEYS[2]) == ARGV[3] and 'left' or 'absent', 0, now} end
if now > deadline then return {'late', 0, now} end
if was[2] ~= ARGV[4] then return {'conflict', 0, now} end
call('SET', KEYS[2], ARGV[3], 'PX', 120000)
call('DEL', key)
if KEYS[3] then call('ZREM', KEYS[3], ARGV[2]) end
return {'left', 0, now}
