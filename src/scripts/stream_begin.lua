#!lua flags=allow-oom
--[[ stream_begin: an entry that was taken over begins, and counts as delivered from now on.
  KEYS[1]  stream      stream
  KEYS[2]  taken       hash, as in stream_recover
  ARGV[1]  group       of consumers
  ARGV[2]  consumer    who begins with it
  ARGV[3]  id          of the entry
  ARGV[4]  deliveries  how often it is delivered with this
  Returns  1 | 0 (it is not this consumer's any more)
  Errors   NOGROUP (nothing was written)
]]
local call, id = redis.call, ARGV[3]
if not call('XPENDING', KEYS[1], ARGV[1], id, id, 1, ARGV[2])[1] then return 0 end
call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, id, 'RETRYCOUNT', ARGV[4], 'JUSTID')
call('HDEL', KEYS[2], id)
return 1
