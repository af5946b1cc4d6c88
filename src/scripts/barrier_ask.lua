--[[ barrier_ask: how it stands with the generation in which this hold arrived; also long after, for the last 100 generations. Who has not
  heard how its arrival was answered sends barrier_arrive again instead.
  KEYS[1]  barrier     hash
  ARGV[1]  hold        id of the arrival
  ARGV[2]  generation  in which it arrived
  ARGV[3]  rules       as in broadcast_set
  Returns  {'waiting', generation, arrived, look_again_ms, now_ms} | {'run', generation, now_ms}
           | {'complete', generation, now_ms} | {'broken', generation, now_ms} | {'gone', now_ms} (did not arrive, or is not known any more)
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local hold, rules = ARGV[1], ARGV[3]
--#include checks
--#include gate_rules
local generation = whole(ARGV[2], 1, 1e16)
if not (generation and string.find(hold, '^[^ .]+%.[^ ]+$')) then return refuse('hold: <client>.<n>, generation: at least 1') end
--#include barrier_read
--#include gate_state
--#include barrier_state
settle()
return answer(generation)
