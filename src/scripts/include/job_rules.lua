-- What a job is besides an item of the queue of its type. Needs call and key, which is the hash of that queue.
--   records    hash: id -> '<state> <generation> <created_ms> <size of its key> <its window, ms> <options>[\t<parents>\t<s: it is single>\t<priority>]\n<its key><payload>'; w: to be run,
--              x: cancelled
--   running    hash: id -> '<delivery> <since_ms> <worker>'; counts while that delivery is held
--   completed, failed, cancelled   sorted sets: ids by the time, ms, when they ended
--   results    hash: id -> what it returned    progress  hash: id -> how far it is
--   trail      hash: id -> '<ms> <delivery> <worker>\t<reason>\n' for each attempt that failed
--   checkpoints  hash: id -> number of the last delivery that did not end with its lease, or told of progress
--   links, blocked   jobs that wait for others: job_sides.lua      tags, tag:<tag>   job_tags.lua
--   events     channel: '<what> <id>[ <id>]...' in each line
--   stats      hash: what -> how many           waiters   hash: id -> 1, a caller waits for its end
--   awaited    string: within the last minute a job ended for whose end a caller waited
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
