#!lua flags=allow-oom
--[[ idempotency_finish: it is done. Written in any case: it was done, be it that the lease had run out.
  KEYS[1]  record        string, as in idempotency_begin
  ARGV[1]  token         of whoever did it
  ARGV[2]  retention_ms  how long this is remembered, an integer of at least 1
  Returns  1 (as it should be) | 0 (the lease had run out: somebody else may have done it too)
]]
local found = redis.call('GET', KEYS[1])
redis.call('SET', KEYS[1], 'done', 'PX', ARGV[2])
return (found == 'by ' .. ARGV[1] or found == 'done') and 1 or 0
