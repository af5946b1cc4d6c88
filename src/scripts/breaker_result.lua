--[[ breaker_result: how a probe went. A failure opens the breaker again, enough successes close it.
  KEYS[1]  breaker  hash
  ARGV[1]  rules    see include/breaker_state.lua
  ARGV[2]  id       of the probe; one whose lease has ended, or that was told already, changes nothing
  ARGV[3]  how      'ok' | 'failed' | 'none' (it did not come to try)
  Returns  {state, version, since_ms, wait_ms as in breaker_report, now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local rules, id, how, session = ARGV[1], ARGV[2], ARGV[3], nil
--#include breaker_state
if how ~= 'ok' and how ~= 'failed' and how ~= 'none' then return refuse('how: ok, failed or none') end
local changed = false
local order, ends = listed(was[8], now, now + lease)
if state == 'half_open' and ends[id] then
    local rest = {}
    for _, one in ipairs(order) do
        if one ~= id then rest[#rest + 1] = one end
    end
    local done = tonumber(was[7] or 0) + (how == 'ok' and 1 or 0)
    if how == 'failed' then
        go('open', recovery)
        changed = true
    elseif done >= successes then
        go('closed')
        changed = true
    else
        put('p', written(rest, ends))
        put('w', done)
    end
end
commit()
if changed then tell() end
return {state, version, since, wait(), now}
