--[[ latch_create: a latch that opens after this many count downs. Again with the same count: the same latch, as it is now. It stays, open
  or not, for the retention after its last use; then it is gone and can be created anew.
  KEYS[1]  latch        hash
  ARGV[1]  count        how many count downs open it, an integer from 0 to 10^12
  ARGV[2]  deadline_ms  the server's time after which this must not run any more
  ARGV[3]  rules        as in broadcast_set
  Returns  {'created', left, now_ms} | {'exists', left, now_ms} | {'late', now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT, LOCKSTEP_COUNT <its count> ... (nothing was written)
]]
local format, rules = 'latch 1', ARGV[3]
--#include checks
--#include gate_rules
local count, deadline = whole(ARGV[1], 0, 1e12), whole(ARGV[2], 0, 1e15)
if not (count and deadline) then return refuse('count: 0 to 10^12, deadline_ms: a time') end
local was = call('HMGET', key, 'v', 'k', 'l')
--#include gate_state
if now > deadline then return {'late', now} end
if was[1] and was[2] + 0 ~= count then return redis.error_reply('LOCKSTEP_COUNT ' .. was[2] .. ' is its count, not ' .. ARGV[1]) end
if not was[1] then call('HSET', key, 'v', format, 'k', count, 'l', count) end
keep()
return {was[1] and 'exists' or 'created', tonumber(was[3] or count), now}
