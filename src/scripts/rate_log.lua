--[[ rate_log: count hits in a sliding window exactly, for all of these keys or for none.
  KEYS[1..]  hits   list: {-shift, base, then for each hit of the window its time in µs and the sum of all costs up to it}
  ARGV[1]    cost   of this hit, an integer of at least 1 and at most limit
  ARGV[2]    take   1: count it | 0: only look
  ARGV[3]    limit  the most within the window
  ARGV[4]    per    the length of the window in µs
  Returns  {taken 1 | 0, now_us, then for each key: what is left, us until the hit fits (0: now), us until the window is empty}
  Errors   LOCKSTEP_ARGUMENT (nothing was written)
]]
--#include rate_time
local cost, take, limit, per = tonumber(ARGV[1]), ARGV[2] == '1', tonumber(ARGV[3]), tonumber(ARGV[4])
if not (cost and limit and per and cost >= 1 and cost <= limit and per >= 1) then
    return redis.error_reply('LOCKSTEP_ARGUMENT cost: 1 to limit, per: in us')
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

-- What to do with a key: how long to wait (0: the hit fits), and all that `hit` and `answer` need for it.
local function look(key)
    local first = call('LRANGE', key, 0, 5)
    if not first[3] then return 0, us, nil, 0, 0, 0, 0, false end
    local last = call('LRANGE', key, -2, -1)
    local latest, sum = tonumber(last[1]), tonumber(last[2])
    -- Where there is no shift, whatever the list began with when its first hits were dropped stands in its place.
    local shift, old, wait, is_back = tonumber(first[1]), 0, 0, false
    shift = shift < 0 and -shift or 0
    local now = us + shift
    -- The server's clock was set back: this window's time goes on from its latest hit.
    if now < latest then shift, now, is_back = shift + latest - now, latest, true end
    local bound = now - per
    while first[2 * old + 3] and tonumber(first[2 * old + 3]) <= bound do old = old + 1 end
    local base = tonumber(first[2 * old + 2])
    if old == 2 then
        old = latest <= bound and call('LLEN', key) / 2 - 1 or first_above(key, 2, 0, bound)
        base = tonumber(call('LINDEX', key, 2 * old + 1))
    end
    local excess = sum - base + cost - limit
    if excess > 0 then
        wait = tonumber(call('LINDEX', key, 2 + 2 * first_above(key, old, 1, base + excess - 1))) + per - now
    end
    return wait, now, latest, sum, base, old, shift, is_back
end

local function hit(key, _, now, latest, sum, _, old, shift, is_back)
    if latest then call('RPUSH', key, now, sum + cost) else call('RPUSH', key, 0, 0, now, cost) end
    if old > 0 then call('LTRIM', key, 2 * old, -1) end
    if shift > 0 and (old > 0 or is_back) then call('LSET', key, 0, -shift) end
    -- The first hit of each stretch of this length makes it stay for two of them, so for one after every hit.
    if is_back or not latest or math.floor(latest / per) ~= math.floor(now / per) then call('PEXPIRE', key, math.ceil(per / 500) + 1) end
end

-- What is left, how long to wait, and until the window is empty.
local function answer(is_hit, wait, now, latest, sum, base, _, _, _)
    local used = sum - base + (is_hit and cost or 0)
    return limit > used and limit - used or 0, wait, used == 0 and 0 or is_hit and per or latest + per - now
end

if not KEYS[2] then
    local key = KEYS[1]
    local wait, now, latest, sum, base, old, shift, is_back = look(key)
    local fits = wait == 0
    if take and fits then hit(key, wait, now, latest, sum, base, old, shift, is_back) end
    if take and not fits and is_back then call('LSET', key, 0, -shift) end
    return {fits and 1 or 0, us, answer(take and fits, wait, now, latest, sum, base)}
end

local plans, taken = {}, 1
for i, key in ipairs(KEYS) do
    plans[i] = {look(key)}
    if plans[i][1] > 0 then taken = 0 end
end
local answers = {taken, us}
for i, key in ipairs(KEYS) do
    local n = #answers
    if take and taken == 1 then hit(key, unpack(plans[i], 1, 8)) end
    if take and taken == 0 and plans[i][8] then call('LSET', key, 0, -plans[i][7]) end
    answers[n + 1], answers[n + 2], answers[n + 3] = answer(take and taken == 1, unpack(plans[i], 1, 8))
end
return answers
