#!lua flags=allow-oom
--[[ barrier_renew: prolong the lease of an arrival whose generation is still open.
  KEYS[1]  barrier  hash
  ARGV[1]  hold     id of the arrival
  ARGV[2]  ttl_ms   the lease's length from now on, an integer from 1 to 10^12
  ARGV[3]  rules    as in broadcast_set
  Returns  {'renewed', ttl_ms, now_ms} | {'complete', generation, now_ms} | {'broken', generation, now_ms} | {'gone', now_ms}
           | {'waiting', generation, arrived, look_again_ms, now_ms} (it dropped out and has no lease)
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local hold, rules = ARGV[1], ARGV[3]
--#include checks
--#include gate_rules
local ttl = whole(ARGV[2], 1, 1e12)
if not (ttl and string.find(hold, '^[^ .]+%.[^ ]+$')) then return refuse('hold: <client>.<n>, ttl_ms: 1 to 10^12') end
--#include barrier_read
--#include gate_state
--#include barrier_state
settle()
if not joined then return {'gone', now} end
if joined ~= open or own_end == 0 then return answer(joined) end
bound = math.min(bound, now + ttl)
write_arrival(hold, open, now + ttl, ttl)
commit(ttl)
return {'renewed', ttl, now}
