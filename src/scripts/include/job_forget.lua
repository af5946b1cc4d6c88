-- How long jobs that ended are remembered, in each type. Needs job_erase. Fields of stats:
--   keep   '<number that completed> <their age, ms> <number that failed or were cancelled> <their age, ms>' at most, number 0: any; as a worker with settings
--          of its own gave them last, - where none did
--   scan   '<n> <time, ms>': the first n that completed cannot be forgotten yet, and are looked at again after this time
--   dropped_completed, dropped_failed   how many were forgotten younger than that, because there were too many
-- Those that ended within the last minute are never too many: a caller may be about to ask for their results.
local a_minute, default_limits, dropped = 60000, {10000, 86400000, 0, 1209600000}, {completed = 0, failed = 0}

-- The limits that count now. keep: those that this worker gives.
local function limits_of(queue, keep)
    local stored = call('HGET', queue .. ':stats', 'keep')
    local four, limits, texts = '^(%S+) (%S+) (%S+) (%S+)$', {}, {}
    local own, known = {string.match(keep or '', four)}, {string.match(stored or '', four)}
    for i = 1, 4 do
        texts[i] = own[i] ~= '-' and own[i] or known[i] or '-'
        limits[i] = tonumber(texts[i]) or default_limits[i]
    end
    local text = table.concat(texts, ' ')
    if text ~= (stored or '- - - -') then call('HSET', queue .. ':stats', 'keep', text) end
    return limits
end

-- Forgets some in this state. True: there may be more.
local function trim(queue, now, state, most, age, at_once)
    local set, first, rests, scan = queue .. ':' .. state, 0, 0, nil
    if age < a_minute and call('EXISTS', queue .. ':awaited') == 1 then age = a_minute end
    local has_links = call('EXISTS', queue .. ':links') == 1
    if has_links and state == 'completed' then
        scan = call('HGET', queue .. ':stats', 'scan')
        first, rests = string.match(scan or '0 0', '^(%d+) (%d+)$')
        if now < rests + 0 then return true end
        at_once = math.min(at_once, 300)
    end
    local found, extra = call('ZRANGE', set, first, first + at_once - 1, 'WITHSCORES'), most > 0 and call('ZCARD', set) - most or 0
    local gone, is_old, early = {}, {}, 0
    for i = 1, #found, 2 do
        local n, ended = #gone + 1, found[i + 1] + 0
        is_old[n] = ended <= now - age
        if not (is_old[n] or (n <= extra and ended <= now - a_minute)) then break end
        gone[n] = found[i]
    end
    local count, is_more = #gone, #gone == at_once
    if has_links then
        local free = unlink(queue, state, gone, is_old)
        if state == 'completed' then
            local from = first + 0
            first = is_more and from + count - #free or 0
            local text = string.format('%d %.0f', first, not is_more and #free < count and now + 200 or 0)
            if text ~= (scan or '0 0') then call('HSET', queue .. ':stats', 'scan', text) end
            is_more = is_more or (from > 0 and #free > 0)  -- those in front may be old by now
        end
        local free_ids, free_old = {}, {}
        for n, i in ipairs(free) do free_ids[n], free_old[n] = gone[i], is_old[i] end
        gone, is_old = free_ids, free_old
    end
    if #gone == 0 then return is_more end
    for n = 1, #gone do
        if not is_old[n] then early = early + 1 end
    end
    if early > 0 then
        local which = state == 'completed' and state or 'failed'
        call('HINCRBY', queue .. ':stats', 'dropped_' .. which, early)
        dropped[which] = dropped[which] + early
    end
    call('ZREM', set, unpack(gone))
    erase(queue, gone)
    return is_more
end

function forget(queue, now, at_once, keep)
    local limits = limits_of(queue, keep)
    local is_more = trim(queue, now, 'completed', limits[1], limits[2], at_once)
    is_more = trim(queue, now, 'failed', limits[3], limits[4], at_once) or is_more
    return trim(queue, now, 'cancelled', limits[3], limits[4], at_once) or is_more
end
