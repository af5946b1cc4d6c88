--[[ breaker_set: open or close a circuit breaker by hand.
  KEYS[1]  breaker      hash
  ARGV[1]  session      as in broadcast_set
  ARGV[2]  sequence     as in broadcast_set
  ARGV[3]  deadline_ms  the server's time after which this must not run any more
  ARGV[4]  rules        see include/breaker_state.lua
  ARGV[5]  to           'open' | 'closed' (counts are forgotten)
  ARGV[6]  span_ms      open: until it may be probed; -1: until it is closed by hand
  Returns  {state, version, now_ms, wait_ms as in breaker_report} (sent again: as it is now) | {'late', 0, now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local rules, session = ARGV[4], ARGV[1]
--#include breaker_state
local sequence, deadline, span_ms = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[6])
if not (sequence and deadline and span_ms and string.find(session, '^%S+$')) or (ARGV[5] ~= 'open' and ARGV[5] ~= 'closed') then
    return refuse('session: no spaces, sequence, deadline_ms, span_ms: numbers, to: open or closed')
end
--#include once
if has_counted(was[12]) then return {state, version, now, wait()} end
if now > deadline then return {'late', 0, now} end
remember(was[12], was[10], was[11], was[23])
go(ARGV[5], span_ms)
commit()
tell()
return {state, version, now, wait()}
