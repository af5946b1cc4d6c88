-- What a job is besides an item of the queue of its type. Needs call and key, which is the hash of that queue.
--   records    hash: id -> '<state> <generation> <created_ms> <size of its key> <options>\n<its key><payload>'; w: to be run, x: cancelled
--   running    hash: id -> '<delivery> <since_ms> <worker>'; counts while that delivery is held
--   completed, failed, cancelled   sorted sets: ids by the time, ms, when they ended
--   results    hash: id -> what it returned    progress  hash: id -> how far it is
--   trail      hash: id -> '<ms> <delivery> <worker>\t<reason>\n' for each attempt that failed
--   stats      hash: what -> how many           waiters   hash: id -> 1, somebody waits for its end
-- An entry in the queue has '<generation> <failures>' as its payload, and counts if the record has that generation and is to be run. Deliveries of
-- generation g are numbered from g * 1,000,000 on, so that no two have the same token.
local function part(name) return key .. ':' .. name end

local news, tally, finished, outcomes, stopped = {}, {}, {completed = {}, failed = {}, cancelled = {}}, {}, {}

local function add_up(what, n) tally[what] = (tally[what] or 0) + n end

local function end_job(state, id, text)
    local list = finished[state]
    list[#list + 1], list[#list + 2] = now, id
    stopped[#stopped + 1] = id
    if text ~= '' then outcomes[#outcomes + 1], outcomes[#outcomes + 2] = id, text end
    news[#news + 1] = state .. ' ' .. id
end

-- Forgets what ended long ago, or before so many others.
local function trim(state, most, age)
    local set = part(state)
    local gone = call('ZRANGE', set, '-inf', now - age, 'BYSCORE', 'LIMIT', 0, 500)
    if #gone == 0 then
        local extra = call('ZCARD', set) - most
        if extra > 0 then gone = call('ZRANGE', set, 0, math.min(extra, 500) - 1) end
    end
    if #gone == 0 then return end
    call('ZREM', set, unpack(gone))
    for _, name in ipairs({'records', 'results', 'trail', 'progress'}) do call('HDEL', part(name), unpack(gone)) end
end

-- Writes what was gathered. keep: '<completed> <their age, ms> <failed and cancelled> <their age, ms>'. Its last step may fail, so it comes last.
local function commit_jobs(keep)
    local is_time = false  -- to forget some
    for state, list in pairs(finished) do
        if #list > 0 then
            in_chunks('ZADD', part(state), list)
            add_up(state, #list / 2)
        end
    end
    in_chunks('HDEL', part('running'), stopped)
    in_chunks('HSET', part('results'), outcomes)
    for what, n in pairs(tally) do
        local total = call('HINCRBY', part('stats'), what, n)
        is_time = is_time or (finished[what] and total % 64 < n)
    end
    if is_time then
        local completed, age, failed, failed_age = string.match(keep, '^(%d+) (%d+) (%d+) (%d+)$')
        trim('completed', completed, age)
        trim('failed', failed, failed_age)
        trim('cancelled', failed, failed_age)
    end
    if #stopped > 0 and call('EXISTS', part('waiters')) == 1 then
        for state, list in pairs(finished) do
            for i = 2, #list, 2 do
                if call('HDEL', part('waiters'), list[i]) == 1 then redis.pcall(publish, part('ended:' .. list[i]), state) end
            end
        end
    end
    if #news > 0 then redis.pcall(publish, part('events'), table.concat(news, '\n')) end
end
