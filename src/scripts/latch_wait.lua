--[[ latch_wait: see whether the latch is open; if not, be told when it opens. Told once, a client asks again. Ask at least once per
  retention: a hash that nobody uses is gone.
  KEYS[1]  latch        hash
  ARGV[1]  hold         '<client>.<n>', n an integer that grows with each call of this client; '': look only, do not wait
  ARGV[2]  deadline_ms  the server's time after which this must not run any more
  ARGV[3]  rules        as in broadcast_set
  Returns  {'open', 0, now_ms} | {'waiting', left, now_ms} | {'absent', now_ms} | {'late', now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local format, rules, hold = 'latch 1', ARGV[3], ARGV[1]
--#include checks
--#include gate_rules
local client, number = string.match(hold, '^([^ .]+)%.(%d+)$')
local deadline = whole(ARGV[2], 0, 1e15)
if not (deadline and (client or hold == '')) then return refuse('hold: <client>.<n> or nothing, deadline_ms: a time') end
local was = call('HMGET', key, 'v', 'l', 'c' .. (client or ''))
--#include gate_state
if now > deadline then return {'late', now} end
if not was[1] then return {'absent', now} end
local left = tonumber(was[2])
if client and left > 0 and number + 0 > tonumber(was[3] or -1) then call('HSET', key, 'c' .. client, number) end
keep()
return {left == 0 and 'open' or 'waiting', left, now}
