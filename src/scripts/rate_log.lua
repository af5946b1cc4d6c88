--[[ rate_log: count hits in a sliding window exactly.
  KEYS[1..]  hits   list of two doubles each: {-shift, base}, then for each hit of the window its time in µs and the sum of all costs up to it
  ARGV[1]    cost   of this hit, an integer of at least 1 and at most limit
  ARGV[2]    how    each: count it for each key that has room, a key may come twice | all: for all or for none | look: count nothing
  ARGV[3]    limit  the most within the window
  ARGV[4]    per    the length of the window in µs
  Returns  {all have room 1 | 0 (each: nothing), now_us, then for each key: what is left, or an error; us until the hit fits (0: it did);
           us until the window is empty}
  Errors   LOCKSTEP_ARGUMENT, of a key LOCKSTEP_FORMAT, WRONGTYPE (nothing was written; each: nothing to this key)
]]
--#include rate_time
--#include rate_hits
local pack, parts = struct.pack, struct.unpack

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
        local middle = math.floor((below + above) / 2)
        if is_above(middle) then above = middle else below = middle end
    end
    return above
end

-- How long to wait, the window's time, the times of its latest hit, the sums at its end and its beginning, how many hits are too old, the clock's
-- shift, and was it set back just now.
local function look(key)
    local first = try('LRANGE', key, '0', '2')
    if first.err then return first end
    if not first[1] then return 0, us, nil, 0, 0, 0, 0, false end
    local last = call('LINDEX', key, '-1')
    if not first[2] or #first[1] + #first[2] + #(first[3] or last) + #last ~= 64 then return redis.error_reply('LOCKSTEP_FORMAT this is no log') end
    local latest, sum = parts('<dd', last)
    -- Where there is no shift, the last hit that was dropped stands in its place.
    local shift, base = parts('<dd', first[1])
    local old, wait, is_back = 0, 0, false
    shift = shift < 0 and -shift or 0
    local now = us + shift
    -- The server's clock was set back: this window's time goes on from its latest hit.
    if now < latest then shift, now, is_back = shift + latest - now, latest, true end
    local bound = now - per
    for i = 2, #first do
        local time, after = parts('<dd', first[i])
        if time > bound then break end
        old, base = i - 1, after
    end
    if old == 2 then
        old = latest <= bound and call('LLEN', key) - 1 or first_above(key, 2, 1, bound)
        if old > 2 then base = select(2, parts('<dd', call('LINDEX', key, old))) end
    end
    local excess = sum - base + cost - limit
    if excess > 0 then
        wait = parts('<d', call('LINDEX', key, 1 + first_above(key, old, 2, base + excess - 1))) + per - now
    end
    return wait, now, latest, sum, base, old, shift, is_back
end

local function settle(i, may_hit, wait, now, latest, sum, base, old, shift, is_back)
    if type(wait) == 'table' then return say(i, wait, 0, 0) end
    local key, is_hit = KEYS[i], may_hit and wait == 0
    local used = sum - base
    if is_hit then
        used = used + cost
        local one = pack('<dd', now, sum + cost)
        if latest then call('RPUSH', key, one) else call('RPUSH', key, pack('<dd', 0, 0), one) end
    end
    if is_hit or is_back and writes then
        -- Without the hits that are too old, and with the clock's shift where there is one.
        if old == 1 then call('LPOP', key) elseif old > 1 then call('LTRIM', key, old == 2 and '2' or old, '-1') end
        if shift > 0 and (old > 0 or is_back) then call('LSET', key, 0, pack('<dd', -shift, base)) end
    end
    -- The first hit of each stretch of this length makes it stay for two of them, so for one after every hit.
    if is_hit and (is_back or not latest or latest - latest % per ~= now - now % per) then call('PEXPIRE', key, math.ceil(per / 500) + 1) end
    say(i, limit > used and limit - used or 0, wait, used == 0 and 0 or is_hit and per or latest + per - now)
end

--#include rate_keys
