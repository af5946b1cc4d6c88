--[[ session_rotate: the session goes on under another id, and the old one is gone. The same again changes nothing.
  KEYS[1]  old    hash, as in session_create
  KEYS[2]  new    where it goes on
  KEYS[3]  index  of its user, as in session_create
  ARGV[1]  old_id
  ARGV[2]  new_id
  Returns  1 | 0 (there is no such session)
  Errors   LOCKSTEP_FORMAT
]]
local call, key, format = redis.call, KEYS[1], 'session 1'
local was = call('HMGET', key, 'v', 'e')
--#include state_hash
if not was[1] then return call('EXISTS', KEYS[2]) end
call('RENAME', KEYS[1], KEYS[2])
call('ZADD', KEYS[3], was[2], ARGV[2])
call('ZREM', KEYS[3], ARGV[1])
--#include server_time
if call('PTTL', KEYS[3]) < was[2] - now then call('PEXPIREAT', KEYS[3], was[2]) end
return 1
