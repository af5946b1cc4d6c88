--[[ broadcast_wait: see whether the event is set, or was since this waiter began to wait; if not, be told of the next set. Told once, a
  client asks again. Ask at least once per retention: a hash that nobody uses is gone, and so is who waits.
  KEYS[1]  event        hash
  ARGV[1]  hold         '<client>.<n>', n an integer that grows with each call of this client; '': look only, do not wait
  ARGV[2]  seen         the generation this waiter got when it began to wait; '' when it begins
  ARGV[3]  deadline_ms  the server's time after which this must not run any more
  ARGV[4]  rules        as in broadcast_set
  Returns  {'open', generation of the last set, now_ms}: every waiter of this client that has seen a smaller one is free
           | {'waiting', generation, now_ms} | {'late', now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local format, rules, hold = 'broadcast 1', ARGV[4], ARGV[1]
--#include checks
--#include gate_rules
local client, number = string.match(hold, '^([^ .]+)%.(%d+)$')
local seen, deadline = ARGV[2] == '' and 1e16 or whole(ARGV[2], 0, 1e16), whole(ARGV[3], 0, 1e15)
if not (seen and deadline and (client or hold == '')) then
    return refuse('hold: <client>.<n> or nothing, seen: a generation or nothing, deadline_ms: a time')
end
local was = call('HMGET', key, 'v', 'g', 's', 'c' .. (client or ''))
--#include gate_state
if now > deadline then return {'late', now} end
local generation = tonumber(was[2] or 0)
local open = was[3] or generation > seen
if client and not open and number + 0 > tonumber(was[4] or -1) then
    call('HSET', key, 'v', format, 'w', 1, 'c' .. client, number)
end
keep()
return {open and 'open' or 'waiting', generation, now}
