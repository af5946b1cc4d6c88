--[[ rate_log: count hits in a sliding window exactly.
  KEYS[1..]  hits   list; each hit: its time in µs (double), that of the oldest one in the window then (double), the sum of all costs
                    before it (3 bytes, the rest is left out), the costs in the window (3 bytes), how many at the list's head are too old (a byte);
                    then, unless they are 0 and 1: by how much the server's clock was set back (double), and its own cost (3 bytes)
  ARGV[1]    cost   of this hit, an integer of at least 1 and at most limit
  ARGV[2]    how    each: count it for each key that has room, a key may come twice | all: for all or for none | look: count nothing
  ARGV[3]    limit  the most within the window, at most 10^6
  ARGV[4]    per    the length of the window in µs
  Returns  {all have room 1 | 0 (each: nothing), now_us, then for each key: what is left, if the hit was counted; else
           {what is left, us until the hit fits (0: it does), us until the window is empty}, or an error}
  Errors   LOCKSTEP_ARGUMENT, of a key LOCKSTEP_FORMAT, WRONGTYPE (no hit was counted; each: none for this key)
]]
--#include rate_time
--#include rate_hits
local pack, parts = struct.pack, struct.unpack
local form, length, sums = '<ddI3I3B', 23, 2 ^ 24
local function no_log() return redis.error_reply('LOCKSTEP_FORMAT this is no log') end

-- Numbers as text: Redis takes them for half the price.
local texts = setmetatable({}, {__index = function(all, i) all[i] = tostring(i) return all[i] end})

-- Time of a hit, and the sum before it. Nothing where the list ends.
local function hit(key, i)
    local text = call('LINDEX', key, texts[i])
    if text then return parts('<dxxxxxxxxI3', text) end
end

-- The first hit from `from` on which `is_above(time, sum)`: so are all behind it, so it is looked for in growing steps, then by halves.
local function first(key, from, is_above)
    local function ends(i)
        local time, before = hit(key, i)
        return not time or is_above(time, before)
    end
    local below, step = from - 1, 1
    while not ends(below + step) do below, step = below + step, step * 2 end
    local above = below + step
    while above - below > 1 do
        local middle = math.floor((below + above) / 2)
        if ends(middle) then above = middle else below = middle end
    end
    return above
end

-- How long to wait, the window's time, the times of its latest and its oldest hit, the sum of all costs, those in it, how many hits are too old,
-- the clock's shift, and was it set back just now.
local function look(key)
    local last = try('LINDEX', key, '-1')
    if not last then return 0, us, nil, us, 0, 0, 0, 0, false end
    local shift, own, is_back = 0, 1, false
    if #last ~= length then
        if #last ~= length + 11 then return last.err and last or no_log() end
        shift, own = parts('<dI3', last, length + 1)
    end
    local latest, oldest, before, used, old = parts(form, last)
    if not (1e15 < oldest and oldest <= latest and latest < 1e17 and used > 0) then return no_log() end
    local now, sum = us + shift, before + own
    if now < latest then
        -- The server's clock was set back: this window's time goes on from its latest hit.
        shift, now, is_back = shift + latest - now, latest, true
        if writes then call('LSET', key, '-1', last:sub(1, length) .. pack('<dI3', shift, own)) end
    end
    local bound = now - per
    if latest <= bound then
        if writes then call('DEL', key) end
        return 0, us, nil, us, 0, 0, 0, 0, false
    end
    if oldest <= bound then
        local steps = 0
        repeat
            steps, old = steps + 1, old + 1
            if steps == 4 then old = first(key, old, function(time) return time > bound end) end
            oldest, before = hit(key, old)
            if not oldest then return no_log() end
        until oldest > bound
        used = (sum - before) % sums
    end
    local wait, excess = 0, used + cost - limit
    if excess > 0 then
        local next = first(key, old + 1, function(_, sum_before) return used - (sum - sum_before) % sums >= excess end)
        wait = hit(key, next - 1) + per - now
    end
    return wait, now, latest, oldest, sum, used, old, shift, is_back
end

local function settle(i, may_hit, wait, now, latest, oldest, sum, used, old, shift, is_back)
    if type(wait) == 'table' or not may_hit or wait > 0 then
        answers[2 + i] = type(wait) == 'table' and wait or {limit > used and limit - used or 0, wait, latest and latest + per - now or 0}
        return
    end
    local key, trimmed = KEYS[i], old
    used = used + cost
    -- Those that are too old go some at a time: less is written.
    if old < 16 and old < used then trimmed = 0 end
    local one = pack(form, now, oldest, sum % sums, used, old - trimmed)
    if shift > 0 or cost > 1 then one = one .. pack('<dI3', shift, cost) end
    call('RPUSH', key, one)
    if trimmed > 0 then call('LTRIM', key, texts[trimmed], '-1') end
    -- The first hit of each stretch of this length makes it stay for two of them, so for one after every hit.
    if is_back or not latest or latest - latest % per ~= now - now % per then call('PEXPIRE', key, math.ceil(per / 500) + 1) end
    answers[2 + i] = limit - used
end

--#include rate_keys
