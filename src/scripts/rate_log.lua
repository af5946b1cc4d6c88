--[[ rate_log: count hits in a sliding window exactly, for all of these keys or for none.
  KEYS[1..]  hits   list of two doubles each: {-shift, base}, then for each hit of the window its time in µs and the sum of all costs up to it
  ARGV[1]    cost   of this hit, an integer of at least 1 and at most limit
  ARGV[2]    take   1: count it | 0: only look
  ARGV[3]    limit  the most within the window
  ARGV[4]    per    the length of the window in µs
  Returns  {taken 1 | 0, now_us, then for each key: what is left, us until the hit fits (0: now), us until the window is empty}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
--#include rate_time
local cost, take, limit, per = tonumber(ARGV[1]), ARGV[2] == '1', tonumber(ARGV[3]), tonumber(ARGV[4])
if not (cost and limit and per and cost >= 1 and cost <= limit and per >= 1) then
    return redis.error_reply('LOCKSTEP_ARGUMENT cost: 1 to limit, per: in us')
end
local pack, parts, floor = struct.pack, struct.unpack, math.floor

-- The first hit of each stretch of this length makes it stay for two of them, so for one after every hit.
local function keep(key) call('PEXPIRE', key, math.ceil(per / 500) + 1) end

-- One key, at most one hit too old, and there is room: the same as below, for three quarters of the cost.
local seen
if take and not KEYS[2] then
    local key = KEYS[1]
    local first = call('LRANGE', key, 0, 2)
    seen = first
    if first[3] and #first[1] == 16 then
        local latest, sum = parts('<dd', call('LINDEX', key, -1))
        local shift, base = parts('<dd', first[1])
        local time, after = parts('<dd', first[2])
        local is_old = time <= us - per
        if is_old then base = after end
        if shift >= 0 and us >= latest and parts('<d', first[3]) > us - per and sum - base + cost <= limit then
            call('RPUSH', key, pack('<dd', us, sum + cost))
            if is_old then call('LTRIM', key, 1, -1) end
            if latest - latest % per ~= us - us % per then keep(key) end
            return {1, us, limit - sum + base - cost, 0, per}
        end
    end
end

-- The first hit from `from` on whose time (part 1) or sum (part 2) is above `bound`. Both grow from hit to hit, so it is looked for in
-- growing steps, then by halves.
local function first_above(key, from, part, bound)
    local function is_above(i)
        local text = call('LINDEX', key, 1 + i)
        return not text or select(part, parts('<dd', text)) > bound
    end
    local below, step = from - 1, 1
    while not is_above(below + step) do below, step = below + step, step * 2 end
    local above = below + step
    while above - below > 1 do
        local middle = floor((below + above) / 2)
        if is_above(middle) then above = middle else below = middle end
    end
    return above
end

-- What to do with a key: how long to wait (0: the hit fits), and all that `hit` and `answer` need for it. Nothing: it is no log.
local function look(key)
    local first = seen or call('LRANGE', key, 0, 2)
    if not first[1] then return 0, us, nil, 0, 0, 0, 0, false end
    if not first[2] or #first[1] ~= 16 then return nil end
    local latest, sum = parts('<dd', call('LINDEX', key, -1))
    -- Where there is no shift, the last hit that was dropped stands in its place.
    local shift, base = parts('<dd', first[1])
    local old, wait, is_back = 0, 0, false
    shift = shift < 0 and -shift or 0
    local now = us + shift
    -- The server's clock was set back: this window's time goes on from its latest hit.
    if now < latest then shift, now, is_back = shift + latest - now, latest, true end
    local bound = now - per
    while first[old + 2] and parts('<d', first[old + 2]) <= bound do old = old + 1 end
    if old == 2 then old = latest <= bound and call('LLEN', key) - 1 or first_above(key, 2, 1, bound) end
    if old > 0 then base = select(2, parts('<dd', first[old + 1] or call('LINDEX', key, old))) end
    local excess = sum - base + cost - limit
    if excess > 0 then
        wait = parts('<d', call('LINDEX', key, 1 + first_above(key, old, 2, base + excess - 1))) + per - now
    end
    return wait, now, latest, sum, base, old, shift, is_back
end

-- Without the hits that are too old, and with the clock's shift where there is one.
local function trim(key, base, old, shift, is_back)
    if old > 0 then call('LTRIM', key, old, -1) end
    if shift > 0 and (old > 0 or is_back) then call('LSET', key, 0, pack('<dd', -shift, base)) end
end

local function hit(key, _, now, latest, sum, base, old, shift, is_back)
    local one = pack('<dd', now, sum + cost)
    if latest then call('RPUSH', key, one) else call('RPUSH', key, pack('<dd', 0, 0), one) end
    trim(key, base, old, shift, is_back)
    if is_back or not latest or latest - latest % per ~= now - now % per then keep(key) end
end

-- What is left, how long to wait, and until the window is empty.
local function answer(is_hit, wait, now, latest, sum, base)
    local used = sum - base + (is_hit and cost or 0)
    return limit > used and limit - used or 0, wait, used == 0 and 0 or is_hit and per or latest + per - now
end

local plans, taken = {}, 1
for i, key in ipairs(KEYS) do
    plans[i] = {look(key)}
    if not plans[i][1] then return redis.error_reply('LOCKSTEP_FORMAT this is no log') end
    if plans[i][1] > 0 then taken = 0 end
end
local answers = {taken, us}
for i, key in ipairs(KEYS) do
    local n, plan = #answers, plans[i]
    if take and taken == 1 then hit(key, unpack(plan, 1, 8)) end
    if take and taken == 0 and plan[8] then trim(key, unpack(plan, 5, 8)) end
    answers[n + 1], answers[n + 2], answers[n + 3] = answer(take and taken == 1, unpack(plan, 1, 8))
end
return answers
