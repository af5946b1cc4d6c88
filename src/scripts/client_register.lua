--[[ client_register: say who a client is and what it holds and waits for, for people who look. Nothing depends on it.
  KEYS[1]  client   hash
  KEYS[2]  clients  sorted set of ids by when they were last heard of, in ms
  ARGV[1]  id       of the client
  ARGV[2]  time_ms  how long this is believed
  ARGV[3..]         fields and values of the client's hash
  Returns  now_ms
]]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('HSET', KEYS[1], unpack(ARGV, 3))
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('ZADD', KEYS[2], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now - ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return now
