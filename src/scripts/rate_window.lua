--[[ rate_window: count hits in a window and, weighted, in the one before it, for all of these keys or for none.
  KEYS[1..]  window  string of three doubles: its beginning in µs, hits since then, hits in the window before
  ARGV[1]    cost    as in rate_log
  ARGV[2]    take    as in rate_log
  ARGV[3]    limit   as in rate_log
  ARGV[4]    per     as in rate_log
  ARGV[5]    ttl_ms  for how long it is kept: twice per, at least
  Returns  {taken 1 | 0, now_us, then for each key: what is left, us until the hit fits (0: now), us until both windows are empty}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
--#include rate_time
local cost, take, limit, per = tonumber(ARGV[1]), ARGV[2] == '1', tonumber(ARGV[3]), tonumber(ARGV[4])
if not (cost and limit and per and cost >= 1 and cost <= limit and per >= 1) then
    return redis.error_reply('LOCKSTEP_ARGUMENT cost: 1 to limit, per: in us')
end

-- One key, in the middle of its window, and there is room: the same as below, for less.
local seen
if take and not KEYS[2] then
    seen = call('GET', KEYS[1])
    if seen and #seen == 24 then
        local start, current, before = struct.unpack('<ddd', seen)
        if us >= start and us < start + per then
            local weighted = before * (start + per - us) / per
            if weighted + current + cost <= limit then
                current = current + cost
                call('PSETEX', KEYS[1], ARGV[5], struct.pack('<ddd', start, current, before))
                return {1, us, limit - current - weighted, 0, start + 2 * per - us}
            end
        end
    end
end

local floor, ceil = math.floor, math.ceil

-- What to do with a key: how long to wait (0: the hit fits), and all that `write` and `answer` need for it.
local function look(key)
    local text
    if seen == nil then text = call('GET', key) else text = seen end
    if not text then return 0, us, 0, 0, 0, false end
    if #text ~= 24 then return nil end
    local start, current, before = struct.unpack('<ddd', text)
    -- The server's clock was set back: the window begins anew, with what it has.
    local is_back = us < start
    if is_back then start = us end
    if us >= start + 2 * per then
        start, current, before = us, 0, 0
    elseif us >= start + per then
        start, current, before = start + per, 0, current
    end
    local weighted, wait = before * (start + per - us) / per, 0
    if weighted + current + cost > limit then
        local room = limit - cost - current
        local weight = room < 0 and (limit - cost) / current or room / before
        wait = ceil(start + per * ((room < 0 and 1 or 0) + (weight < 1 and 1 - weight or 0)) - us)
        if wait < 1 then wait = 1 end
    end
    return wait, start, current, before, weighted, is_back
end

local function write(key, start, current, before)
    call('PSETEX', key, ARGV[5], struct.pack('<ddd', start, current, before))
end

-- What is left, how long to wait, and until both windows are empty.
local function answer(wait, start, current, before, weighted)
    local left = floor(limit - current - weighted)
    return left > 0 and left or 0, wait, current > 0 and start + 2 * per - us or before > 0 and start + per - us or 0
end

local plans, taken = {}, 1
for i, key in ipairs(KEYS) do
    local wait, start, current, before, weighted, is_back = look(key)
    if not wait then return redis.error_reply('LOCKSTEP_FORMAT this is no window') end
    if not KEYS[2] then
        if take and wait == 0 then current = current + cost end
        if take and (wait == 0 or is_back) then write(key, start, current, before) end
        return {wait == 0 and 1 or 0, us, answer(wait, start, current, before, weighted)}
    end
    if wait > 0 then taken = 0 end
    plans[i] = {wait, start, current, before, weighted, is_back}
end
local answers = {taken, us}
for i, key in ipairs(KEYS) do
    local wait, start, current, before, weighted, is_back = unpack(plans[i])
    local n = #answers
    if take and taken == 1 then current = current + cost end
    if take and (taken == 1 or is_back) then write(key, start, current, before) end
    answers[n + 1], answers[n + 2], answers[n + 3] = answer(wait, start, current, before, weighted)
end
return answers
