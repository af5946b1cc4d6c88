--[[ rate_window: count hits in a window and, weighted, in the one before it.
  KEYS[1..]  window  string of three doubles: its beginning in µs, hits since then, hits in the window before
  ARGV[1]    cost    as in rate_log
  ARGV[2]    how     as in rate_log
  ARGV[3]    limit   as in rate_log
  ARGV[4]    per     as in rate_log
  ARGV[5]    ttl_ms  for how long it is kept: twice per, at least
  Returns  {all have room 1 | 0 (each: nothing), now_us, then for each key: what is left, or an error; us until the hit fits (0: it does, or did);
           us until both windows are empty}
  Errors   as rate_log
]]
--#include rate_time
--#include rate_hits
local function say(i, left, wait, reset) answers[3 * i], answers[3 * i + 1], answers[3 * i + 2] = left, wait, reset end

-- How long to wait, when the window began, hits since then, in the one before, these weighted, was the clock set back, and began it just now.
local function look(key)
    local text = try('GET', key)
    if not text then return 0, us, 0, 0, 0, false, true end
    if #text ~= 24 then return text.err and text or redis.error_reply('LOCKSTEP_FORMAT this is no window') end
    local start, current, before = struct.unpack('<ddd', text)
    -- The server's clock was set back: the window begins anew, with what it has.
    local is_back, is_new = us < start, us >= start + per
    if is_back then
        start = us
    elseif us >= start + 2 * per then
        start, current, before = us, 0, 0
    elseif is_new then
        start, current, before = start + per, 0, current
    end
    local weighted, wait = before * (start + per - us) / per, 0
    if weighted + current + cost > limit then
        local room = limit - cost - current
        local weight = room < 0 and (limit - cost) / current or room / before
        wait = math.ceil(start + per * ((room < 0 and 1 or 0) + (weight < 1 and 1 - weight or 0)) - us)
        if wait < 1 then wait = 1 end
    end
    return wait, start, current, before, weighted, is_back, is_new
end

local function settle(i, may_hit, wait, start, current, before, weighted, is_back, is_new)
    if type(wait) == 'table' then return say(i, wait, 0, 0) end
    local is_hit = may_hit and wait == 0
    if is_hit then current = current + cost end
    if is_hit and not is_back and not is_new then
        call('SETRANGE', KEYS[i], '8', struct.pack('<d', current))  -- it stays as long as its window made it
    elseif is_hit or is_back and writes then
        call('PSETEX', KEYS[i], ARGV[5], struct.pack('<ddd', start, current, before))
    end
    local left = math.floor(limit - current - weighted)
    say(i, left > 0 and left or 0, wait, current > 0 and start + 2 * per - us or before > 0 and start + per - us or 0)
end

--#include rate_keys
