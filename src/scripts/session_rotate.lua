--[[ session_rotate: the session goes on under another handle, perhaps as another user's, and the old one is gone. The same again changes nothing.
  KEYS[1]  old          hash, as in session_create
  KEYS[2]  new          where it goes on
  KEYS[3]  index        of the user it has from now on, as in session_create; none: it is nobody's
  KEYS[4]  index        of the user it had; none: it was nobody's
  ARGV[1]  deadline_ms  the server's time after which this must not run any more
  ARGV[2]  old_handle
  ARGV[3]  new_handle
  ARGV[4]  user         it has from now on; '': nobody
  Returns  {'rotated', 0, now_ms} | {'absent', 0, now_ms} (there is no such session) | {'late', 0, now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local call, key, format, deadline = redis.call, KEYS[1], 'session 1', tonumber(ARGV[1])
local was = call('HMGET', key, 'v', 'e')
--#include state_hash
--#include server_time
if not deadline then return redis.error_reply('LOCKSTEP_ARGUMENT deadline_ms: a time') end
if not was[1] then return {call('EXISTS', KEYS[2]) == 1 and 'rotated' or 'absent', 0, now} end
if now > deadline then return {'late', 0, now} end
call('RENAME', KEYS[1], KEYS[2])
call('HSET', KEYS[2], 'u', ARGV[4])
if KEYS[3] then
    call('ZADD', KEYS[3], was[2], ARGV[3])
    if call('PTTL', KEYS[3]) < was[2] - now then call('PEXPIREAT', KEYS[3], was[2]) end
end
if KEYS[4] then call('ZREM', KEYS[4], ARGV[2]) end
return {'rotated', 0, now}
