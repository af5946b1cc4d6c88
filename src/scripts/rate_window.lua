--[[ rate_window: count hits in a window and, weighted, in the one before it, for all of these keys or for none.
  KEYS[1..]  window  string '<beginning in µs> <hits since then> <hits in the window before>'
  ARGV[1]    cost    as in rate_log
  ARGV[2]    take    as in rate_log
  ARGV[3]    limit   as in rate_log
  ARGV[4]    per     as in rate_log
  Returns  {taken 1 | 0, now_us, then for each key: what is left, us until the hit fits (0: now), us until both windows are empty}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
--#include rate_arguments
local cost, take, limit, per = whole(ARGV[1], 1, 1e9), whole(ARGV[2], 0, 1), whole(ARGV[3], 1, 1e9), whole(ARGV[4], 1, 1e15)
if not (cost and take and limit and per and cost <= limit) then
    return redis.error_reply('LOCKSTEP_ARGUMENT cost: 1 to limit, limit: 1 to 10^9, per: in us')
end

local plans, taken = {}, 1
for i, key in ipairs(KEYS) do
    local text = call('GET', key)
    local plan = {start = us, current = 0, before = 0, wait = 0}
    if text then
        local start, current, before = string.match(text, '^(%d+) (%d+) (%d+)$')
        if not start then return redis.error_reply('LOCKSTEP_FORMAT this is no window') end
        plan.start, plan.current, plan.before = tonumber(start), tonumber(current), tonumber(before)
        -- The server's clock was set back: the window begins anew, with what it has.
        if us < plan.start then plan.start, plan.is_back = us, true end
        if us >= plan.start + 2 * per then
            plan.start, plan.current, plan.before = us, 0, 0
        elseif us >= plan.start + per then
            plan.start, plan.current, plan.before = plan.start + per, 0, plan.current
        end
    end
    plan.weighted = plan.before * (plan.start + per - us) / per
    if plan.weighted + plan.current + cost > limit then
        taken = 0
        local room = limit - cost - plan.current
        if room >= 0 then
            plan.wait = math.ceil(plan.start + per * (1 - room / plan.before) - us)
        else
            local weight = (limit - cost) / plan.current
            plan.wait = math.ceil(plan.start + per * (weight < 1 and 2 - weight or 1) - us)
        end
        if plan.wait < 1 then plan.wait = 1 end
    end
    plans[i] = plan
end

local answer = {taken, us}
for i, key in ipairs(KEYS) do
    local plan, n = plans[i], #answer
    if taken == 1 and take == 1 then plan.current = plan.current + cost end
    if (taken == 1 or plan.is_back) and take == 1 then
        local text = string.format('%.0f %.0f %.0f', plan.start, plan.current, plan.before)
        call('SET', key, text, 'PX', math.ceil((plan.start + 2 * per - us) / 1000) + 1)
    end
    local left = math.floor(limit - plan.current - plan.weighted)
    answer[n + 1], answer[n + 2] = left > 0 and left or 0, plan.wait
    answer[n + 3] = plan.current > 0 and plan.start + 2 * per - us or plan.before > 0 and plan.start + per - us or 0
end
return answer
