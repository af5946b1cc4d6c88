--[[ rate_log: count hits in a sliding window exactly, for all of these keys or for none.
  KEYS[1..]  hits   list: {shift, base, then for each hit of the window its time in µs and the sum of all costs up to it}
  ARGV[1]    cost   of this hit, an integer of at least 1 and at most limit
  ARGV[2]    take   1: count it | 0: only look
  ARGV[3]    limit  the most within the window
  ARGV[4]    per    the length of the window in µs
  Returns  {taken 1 | 0, now_us, then for each key: what is left, us until the hit fits (0: now), us until the window is empty}
  Errors   LOCKSTEP_ARGUMENT (nothing was written)
]]
--#include rate_arguments
local cost, take, limit, per = whole(ARGV[1], 1, 1e9), whole(ARGV[2], 0, 1), whole(ARGV[3], 1, 1e9), whole(ARGV[4], 1, 1e15)
if not (cost and take and limit and per and cost <= limit) then
    return redis.error_reply('LOCKSTEP_ARGUMENT cost: 1 to limit, limit: 1 to 10^9, per: in us')
end

-- The first hit from `from` on whose time (part 0) or sum (part 1) is above `bound`. Both grow from hit to hit, so it is looked for in
-- growing steps, then by halves.
local function first_above(key, from, part, bound)
    local function is_above(i)
        local value = call('LINDEX', key, 2 + 2 * i + part)
        return not value or tonumber(value) > bound
    end
    local below, step = from - 1, 1
    while not is_above(below + step) do below, step = below + step, step * 2 end
    local above = below + step
    while above - below > 1 do
        local middle = math.floor((below + above) / 2)
        if is_above(middle) then above = middle else below = middle end
    end
    return above
end

local plans, taken = {}, 1
for i, key in ipairs(KEYS) do
    local first = call('LRANGE', key, 0, 2)
    local plan = {shift = tonumber(first[1] or 0), base = tonumber(first[2] or 0), sum = 0, old = 0, wait = 0, latest = false, now = us}
    if first[3] then
        local last = call('LRANGE', key, -2, -1)
        plan.latest, plan.sum, plan.now = tonumber(last[1]), tonumber(last[2]), us + plan.shift
        -- The server's clock was set back: this window's time goes on from its latest hit.
        if plan.now < plan.latest then
            plan.shift, plan.now, plan.is_back = plan.shift + plan.latest - plan.now, plan.latest, true
        end
        local bound = plan.now - per
        if tonumber(first[3]) <= bound then
            plan.old = plan.latest <= bound and call('LLEN', key) / 2 - 1 or first_above(key, 1, 0, bound)
            plan.base = tonumber(call('LINDEX', key, 2 * plan.old + 1))
        end
    end
    plan.used = plan.sum - plan.base
    local excess = plan.used + cost - limit
    if excess > 0 then
        taken = 0
        local leaves = first_above(key, plan.old, 1, plan.base + excess - 1)
        plan.wait = tonumber(call('LINDEX', key, 2 + 2 * leaves)) + per - plan.now
    end
    plans[i] = plan
end

local answer = {taken, us}
for i, key in ipairs(KEYS) do
    local plan, n = plans[i], #answer
    if taken == 1 and take == 1 then
        if not plan.latest then call('RPUSH', key, 0, 0, plan.now, cost) else call('RPUSH', key, plan.now, plan.sum + cost) end
        if plan.old > 0 then call('LTRIM', key, 2 * plan.old, -1) end
        if plan.old > 0 or plan.is_back then call('LSET', key, 0, plan.shift) end
        call('PEXPIRE', key, math.ceil(per / 1000) + 1)
        plan.used, plan.latest = plan.used + cost, plan.now
    elseif plan.is_back and take == 1 then
        call('LSET', key, 0, plan.shift)
    end
    answer[n + 1], answer[n + 2] = limit > plan.used and limit - plan.used or 0, plan.wait
    answer[n + 3] = plan.used > 0 and plan.latest + per - plan.now or 0
end
return answer
