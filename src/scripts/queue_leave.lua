--[[ queue_leave: somebody does not wait any more, for items or for room. If it was told of something, the next one is.
  KEYS[1]  queue    hash
  KEYS[2]  ready    list
  KEYS[3]  ranked   sorted set
  KEYS[4]  waiting  sorted set: where it waited
  ARGV[1]  rules    as in queue_push
  ARGV[2]  name     who
  ARGV[3]  word     what the others are told
  ARGV[4]  lane     whose worker it was; '': of none
  Returns  how many were told
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local besides
--#include checks
--#include queue_rules
if not string.find(ARGV[3], '^[rm]$') then return refuse('word: r or m') end
--#include server_time
--#include queue_state
--#include queue_was
--#include queue_tell
--#include queue_tell_time
now = own_time(was, now)
if ARGV[4] ~= '' then call('HDEL', key, 'w' .. ARGV[4]) end
if call('ZREM', KEYS[4], ARGV[2]) == 1 then
    -- It may have been the one who was to look when something ends or is due.
    if ARGV[3] == 'r' then
        nobody_looks()
        if was[5] < 1e15 then tell_time(KEYS[4], math.max(was[5], now)) end
    end
    return 0
end
-- It had been told, and does nothing about it.
if ARGV[3] == 'r' and call('EXISTS', KEYS[2], KEYS[3]) == 0 then return 0 end
return tell(KEYS[4], ARGV[3], 1)
