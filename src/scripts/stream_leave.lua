#!lua flags=allow-oom
--[[ stream_leave: a consumer goes, unless entries are pending for it: with it those would be forgotten.
  KEYS[1]  stream    stream
  ARGV[1]  group     of consumers
  ARGV[2]  consumer  who goes
  Returns  1 (gone) | 0 (something is pending)
  Errors   NOGROUP (nothing was written)
]]
if redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', 1, ARGV[2])[1] then return 0 end
redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])
return 1
