--[[ queue_nudge: somebody was told of items a while ago. If they are still there, it has died, and the next one is told.
  KEYS[1]  ready    list
  KEYS[2]  ranked   sorted set
  KEYS[3]  waiting  sorted set: who waits for items
  KEYS[4]  queue    hash
  ARGV[1]  rules    as in queue_push
  Returns  how many were told
  Errors   LOCKSTEP_ARGUMENT (nothing was written)
]]
local call, key = redis.call, KEYS[4]
local publish, channel = string.match(ARGV[1], '^(S?PUBLISH) %d+ %d+ %d+ %d+ %d+ (.+)$')
if not publish then return redis.error_reply('LOCKSTEP_ARGUMENT rules') end
--#include queue_tell
if call('EXISTS', KEYS[1], KEYS[2]) == 0 then return 0 end
return tell(KEYS[3], 'r', 1)
