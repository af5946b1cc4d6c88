--[[ queue_nudge: somebody was told of items a while ago, or got one. If they are still there, or its lease is over, it has died: the next one is told.
  KEYS[1]  queue    hash
  KEYS[2]  ready    list
  KEYS[3]  ranked   sorted set
  KEYS[4]  waiting  sorted set: who waits for items
  KEYS[5]  held     sorted set
  ARGV[1]  rules    as in queue_push
  ARGV[2]  in_ms    0, or: who asks will not be there, and the next ones are to look then
  Returns  how many were told
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local besides
--#include checks
--#include queue_rules
--#include server_time
--#include queue_state
--#include queue_was
--#include queue_tell
--#include queue_tell_time
local wait = whole(ARGV[2] or '', 0, 60000)
if not wait then return refuse('in_ms: 0 to 60000') end
now = own_time(was, now)
if wait > 0 then
    tell_time(KEYS[4], now + wait)
    return 0
end
local first = call('ZRANGE', KEYS[5], 0, 0, 'WITHSCORES')[2]
if call('EXISTS', KEYS[2], KEYS[3]) == 0 and not (first and first + 0 <= now) then return 0 end
return tell(KEYS[4], 'r', 1)
