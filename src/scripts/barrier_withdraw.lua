#!lua flags=allow-oom
--[[ barrier_withdraw: this hold can't wait any longer. If its generation is still open, that breaks it for all; it may be complete.
  KEYS[1]  barrier     hash
  ARGV[1]  hold        id of the arrival
  ARGV[2]  generation  in which it arrived
  ARGV[3]  rules       as in broadcast_set
  Returns  {'broken', generation, now_ms} | {'complete', generation, now_ms} | {'gone', now_ms} as in barrier_ask
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
if generation == open and joined == open then close('b', hold) end
return answer(generation)
