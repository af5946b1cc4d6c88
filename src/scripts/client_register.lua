--[[ client_register: say who a client is and what it holds and waits for, for people who look. Nothing depends on it.
  KEYS[1]  client   hash
  KEYS[2]  clients  sorted set of ids by when they were last heard of, in ms
  ARGV[1]  id       of the client
  ARGV[2]  time_ms  how long this is kept
  ARGV[3]  news     channel on which somebody waits for that; '': nobody does
  ARGV[4..]         fields and values of the client's hash
  Returns  now_ms
]]
local call = redis.call
--#include server_time
-- A server out of memory refuses only the first write of a script, and not one that keeps: who is registered goes on, nobody is new.
if call('EXISTS', KEYS[1]) == 1 then call('PEXPIRE', KEYS[1], ARGV[2]) end
call('HSET', KEYS[1], 'said', now, unpack(ARGV, 4))
call('PEXPIRE', KEYS[1], ARGV[2])
call('ZADD', KEYS[2], now, ARGV[1])
call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now - ARGV[2])
call('PEXPIRE', KEYS[2], ARGV[2])
if ARGV[3] ~= '' then redis.pcall('PUBLISH', ARGV[3], ARGV[1]) end
return now
