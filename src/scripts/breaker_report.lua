--[[ breaker_report: add outcomes of calls to the counts of a circuit breaker, open it when they are bad, and read it.
  KEYS[1]  breaker   hash
  ARGV[1]  rules     see include/breaker_state.lua
  ARGV[2]  session   of the reporter, without spaces
  ARGV[3]  sequence  grows with each report of the session; sent again it counts once. 0: only read
  ARGV[4]  version   at which these outcomes were counted; those of an earlier one are not counted any more
  ARGV[5]  ok        how many calls went well
  ARGV[6]  failed    how many did not
  ARGV[7]  is_bad    1: by the reporter's own counts it should be open | 0
  ARGV[8]  host      of the reporter, without spaces: those of one are one towards the quorum
  Returns  {state, version, since_ms, wait_ms until it may be probed or -1, now_ms, ok, failed: in the sampling time, of all}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local rules, session = ARGV[1], ARGV[2]
--#include breaker_state
local sequence, counted_at, ok, failed = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
if not (sequence and counted_at and ok and failed and string.find(session, '^%S+$') and string.find(ARGV[8], '^%S+$')) then
    return refuse('session, host: no spaces, sequence, version, ok, failed: numbers')
end
--#include once
-- Nine slices cover the sampling time; the tenth is the one that has just begun.
local slice = math.ceil(sampling / 9)
local current = math.floor(now / slice)
local sums, mine = {0, 0}, {0, 0}
for i = 0, 9 do
    local number, good, bad = string.match(was[13 + i] or '', '^(%d+) (%d+) (%d+)$')
    number = tonumber(number)
    if number and number > current - 10 and number <= current then
        sums = {sums[1] + good, sums[2] + bad}
        if number == current then mine = {tonumber(good), tonumber(bad)} end
    end
end

local changed = false
if sequence > 0 and not has_counted(was[12]) then
    remember(was[12], was[10], was[11], was[23])
    if not was[1] then
        -- Forgotten since: it goes on under the version that its users know.
        version = counted_at
        put('n', version)
        put('s', 'closed')
        put('t', now)
    end
    if state == 'closed' and counted_at == version and ok + failed > 0 then
        sums = {sums[1] + ok, sums[2] + failed}
        put('c' .. current % 10, string.format('%.0f %.0f %.0f', current, mine[1] + ok, mine[2] + failed))
        local hosts = 0
        if reporters > 1 then
            -- One entry for each host, and no more of them than the quorum needs: what a report costs does not grow with those who report.
            local me, list, has = session .. '@' .. ARGV[8], {}, {}
            local function keep(id, ms)
                local host = string.match(id, '[^@]*$')
                if has[host] or #list == reporters then return end
                list[#list + 1], has[host] = string.format('%s %.0f ', id, ms), true
            end
            if ARGV[7] == '1' then keep(me, now) end
            local order, times = listed(was[9], now - sampling, now)
            for _, id in ipairs(order) do
                -- One that is well again says so for itself, not for another that has reported for its host since.
                if id ~= me then keep(id, times[id]) end
            end
            hosts = #list
            local text = table.concat(list)
            if text ~= (was[9] or '') then put('f', text) end
        end
        local all = sums[1] + sums[2]
        local is_bad = (threshold > 0 and sums[2] >= threshold) or (ratio > 0 and all >= minimum and sums[2] * 1000000 >= ratio * all)
        if is_bad and failed > 0 and (reporters <= 1 or hosts >= reporters) then
            go('open', recovery)
            changed = true
        end
    end
end
commit()
if changed then tell() end
return {state, version, since, wait(), now, sums[1], sums[2]}
