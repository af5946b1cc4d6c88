--[[ breaker_set: open or close a circuit breaker by hand.
  KEYS[1]  breaker  hash
  ARGV[1]  rules    see include/breaker_state.lua
  ARGV[2]  to       'open' | 'closed' (counts are forgotten)
  ARGV[3]  span_ms  open: until it may be probed; -1: until it is closed by hand
  Returns  {state, version, since_ms, wait_ms as in breaker_report, now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local rules, session = ARGV[1], nil
--#include breaker_state
local span_ms = tonumber(ARGV[3])
if not span_ms or (ARGV[2] ~= 'open' and ARGV[2] ~= 'closed') then return refuse('to: open or closed, span_ms: a number') end
go(ARGV[2], span_ms)
commit()
tell()
return {state, version, since, wait(), now}
