-- What a job is besides an item of the queue of its type. Needs call and key, which is the hash of that queue.
--   records    hash: id -> '<state> <generation> <created_ms> <size of its key> <its window, ms> <options>[\t<parents>]\n<its key><payload>'; w: to be run,
--              x: cancelled
--   running    hash: id -> '<delivery> <since_ms> <worker>'; counts while that delivery is held
--   completed, failed, cancelled   sorted sets: ids by the time, ms, when they ended
--   results    hash: id -> what it returned    progress  hash: id -> how far it is
--   trail      hash: id -> '<ms> <delivery> <worker>\t<reason>\n' for each attempt that failed
--   links, blocked   jobs that wait for others: job_sides.lua      tags, tag:<tag>   job_tags.lua
--   events     channel: '<what> <id>[ <id>]...' in each line
--   stats      hash: what -> how many           waiters   hash: id -> 1, somebody waits for its end
-- An entry in the queue has '<generation> <failures>' as its payload, and counts if the record has that generation and is to be run. Deliveries of
-- generation g are numbered from g * 1,000,000 on (g up to 2,000, then again), so that no two have the same token.
-- Scripts of jobs touch more keys than they are given. While a slot of a cluster moves, a call with one that is not at this node ends the script, in the middle
-- of what it does. So each of them is given a key that is never there: a request that has one is refused before it begins (TRYAGAIN), until the slot has moved.
local function part(name) return key .. ':' .. name end

local added, started, news, tally, finished, outcomes = {}, {}, {}, {}, {completed = {}, failed = {}, cancelled = {}}, {}
-- Those that ended, where others may wait for them, and how: all whose id has an f, or all.
local linked, has_heirs = {}, false

local function add_up(what, n) tally[what] = (tally[what] or 0) + n end

-- It was cancelled, but its worker goes on as far as is known, and nobody else may begin.
-- Of an entry that was dropped: only if it is that of this generation.
local has_singles
local function is_stopping(id, generation)
    if not string.find(id, 'f', 1, true) then return false end
    has_singles = has_singles or call('EXISTS', part('singles'))
    local text = has_singles == 1 and call('HGET', part('links'), 'z' .. id)
    if not text or (generation and string.match(text, '^%d+') ~= generation) then return false end
    linked[#linked + 1], linked[#linked + 2] = id, 'over'
    return true
end

-- is_sure: also if it was told to stop before, and run again since.
local function end_job(state, id, text, is_sure)
    local is_linked = has_heirs or string.find(id, 'f', 1, true)
    if is_linked and not is_sure and is_stopping(id) then return end
    local list = finished[state]
    list[#list + 1] = id
    if text ~= '' then outcomes[#outcomes + 1], outcomes[#outcomes + 2] = id, text end
    if is_linked then linked[#linked + 1], linked[#linked + 2] = id, state end
end

local forget_old, erase  -- job_forget

-- Writes what was gathered. keep: '<completed> <their age, ms> <failed and cancelled> <their age, ms>'. Its last step may fail, so it comes last.
local function commit_jobs(keep)
    local rounds = 0  -- of those that may be forgotten: one for 64 that ended
    local when, is_awaited = string.format('%.0f', now), false
    in_chunks('HSET', part('results'), outcomes)
    for state, ids in pairs(finished) do
        if #ids > 0 then
            in_chunks('HDEL', part('running'), ids)
            add_up(state, #ids)
            is_awaited = is_awaited or call('EXISTS', part('waiters')) == 1
            if state == 'completed' and keep and string.sub(keep, 1, 2) == '0 ' and not is_awaited and call('EXISTS', part('links')) == 0 then
                erase(ids)
            else
                local scored = {}
                for i, id in ipairs(ids) do scored[2 * i - 1], scored[2 * i] = when, id end
                in_chunks('ZADD', part(state), scored)
            end
        end
    end
    for what, n in pairs(tally) do
        local total = call('HINCRBY', part('stats'), what, n)
        if finished[what] then rounds = rounds + math.floor(total / 64) - math.floor((total - n) / 64) end
    end
    if rounds > 0 and keep then forget_old(keep, math.min(100 * rounds, 1500)) end
    if is_awaited then
        for state, ids in pairs(finished) do
            for _, id in ipairs(ids) do
                if call('HDEL', part('waiters'), id) == 1 then redis.pcall(publish, part('ended:' .. id), state) end
            end
        end
    end
    -- In this order: one that came may have begun, and one that failed, too.
    local function say(what, ids)
        if #ids > 0 then news[#news + 1] = what .. ' ' .. table.concat(ids, ' ') end
    end
    say('added', added)
    for state, ids in pairs(finished) do say(state, ids) end
    say('started', started)
    if #news > 0 then redis.pcall(publish, part('events'), table.concat(news, '\n')) end
end
