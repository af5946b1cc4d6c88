#!lua flags=allow-oom
--[[ client_leave: a client that said who it is has ended.
  KEYS[1]  client   hash
  KEYS[2]  clients  sorted set of ids by when they were last heard of
  ARGV[1]  id       of the client
  Returns  1 (it was there) | 0
]]
redis.call('ZREM', KEYS[2], ARGV[1])
return redis.call('DEL', KEYS[1])
