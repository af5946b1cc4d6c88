--[[ breaker_probe: ask for one of the few calls that may try whether things work again. The first to ask in time makes it half open.
  KEYS[1]  breaker  hash
  ARGV[1]  rules    see include/breaker_state.lua
  ARGV[2]  id       of this probe, without spaces; the same id again is granted once
  Returns  {state, version, since_ms, wait_ms as in breaker_report, now_ms, granted 1 | 0, ms until a probe's lease ends or 0}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local rules, id, session = ARGV[1], ARGV[2], nil
--#include breaker_state
if not string.find(id, '^%S+$') then return refuse('id: no spaces') end
local granted, next_end, changed = 0, 0, false
if state == 'open' and wait() == 0 then
    go('half_open')
    was[8], changed = '', true
end
if state == 'half_open' then
    -- A lease that ends further away than it is long is from before the clock was set back.
    local order, ends = listed(was[8], now, now + lease)
    if ends[id] then
        granted = 1
    elseif #order < probes then
        order[#order + 1], ends[id], granted = id, now + lease, 1
        put('p', written(order, ends))
    end
    for _, one in ipairs(order) do next_end = math.max(0, math.min(next_end == 0 and lease or next_end, ends[one] - now)) end
end
commit()
if changed then tell() end
return {state, version, since, wait(), now, granted, next_end}
