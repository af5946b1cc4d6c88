#!lua flags=allow-oom
--[[ barrier_finish: the completion step was run, well or not: this ends the generation.
  KEYS[1]  barrier     hash
  ARGV[1]  hold        id of the arrival that was told to run it
  ARGV[2]  generation  in which it arrived
  ARGV[3]  ok          1: complete, 0: broken
  ARGV[4]  rules       as in broadcast_set
  Returns  {'complete', generation, now_ms} | {'broken', generation, now_ms} (also: it was broken before) | {'gone', now_ms}
           | {'waiting', generation, arrived, look_again_ms, now_ms} (it was not told to run it)
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local hold, rules = ARGV[1], ARGV[4]
--#include checks
--#include gate_rules
local generation, ok = whole(ARGV[2], 1, 1e16), whole(ARGV[3], 0, 1)
if not (generation and ok and string.find(hold, '^[^ .]+%.[^ ]+$')) then
    return refuse('hold: <client>.<n>, generation: at least 1, ok: 0 or 1')
end
--#include barrier_read
--#include gate_state
--#include barrier_state
settle()
if generation == open and runner == hold then close(ok == 1 and 'c' or 'b', hold) end
return answer(generation)
