--[[ queue_nudge: somebody was told of items a while ago, or got one. If they are still there, or its lease is over, it has died: the next one is told.
  KEYS[1]  ready    list
  KEYS[2]  ranked   sorted set
  KEYS[3]  waiting  sorted set: who waits for items
  KEYS[4]  queue    hash
  KEYS[5]  held     sorted set
  ARGV[1]  rules    as in queue_push
  Returns  how many were told
  Errors   LOCKSTEP_ARGUMENT (nothing was written)
]]
local call, key = redis.call, KEYS[4]
local publish, channel = string.match(ARGV[1], '^(S?PUBLISH) %d+ %d+ %d+ %d+ %d+ (.+)$')
if not publish then return redis.error_reply('LOCKSTEP_ARGUMENT rules') end
--#include server_time
--#include queue_now
--#include queue_tell
local first = call('ZRANGE', KEYS[5], 0, 0, 'WITHSCORES')[2]
if call('EXISTS', KEYS[1], KEYS[2]) == 0 and not (first and first + 0 <= now) then return 0 end
return tell(KEYS[3], 'r', 1)
