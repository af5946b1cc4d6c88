-- What is done with the items of a queue besides; with those of jobs it is more (job_work, job_judge). Needs queue_settings, queue_once, read_within and as local dead.
local takes_ms = {later = true, extend = true, unused = false, postpone = true, fail = false}  -- what can be said of one
local function is_exhausted(_, deliveries) return deliveries >= most_deliveries and deliveries end

-- Letters are kept for the retention, and within the limits that were set. Those that are too many go in bounded steps, the oldest first.
local is_buried, dropped_letters = false, 0
local function bury(entry, deliveries, reason)
    call('XADD', dead, '*', 'n', deliveries, 'why', reason, 'item', entry)
    is_buried = true
end

local function drop_letters()
    local length = call('XLEN', dead)
    if length == 0 then return end
    local function trim(...)
        local count = call('XTRIM', dead, ...)
        dropped_letters, length = dropped_letters + count, length - count
        return count
    end
    if dead_retention > 0 then
        local first = string.format('%.0f', server_now - dead_retention)
        -- Whole nodes of the stream; when none is left that is all too old, what is too old is in the first one.
        if trim('MINID', '~', first, 'LIMIT', 1000) == 0 then trim('MINID', first) end
    end
    if most_dead > 0 and length > most_dead then trim('MAXLEN', math.max(most_dead, length - 1000)) end
    -- The server knows how much memory they take, at about.
    for _ = 1, most_dead_bytes > 0 and 8 or 0 do
        local bytes = length > 0 and redis.pcall('MEMORY', 'USAGE', dead)
        if type(bytes) ~= 'number' or bytes <= most_dead_bytes then break end  -- or it may not be asked
        trim('MAXLEN', length - math.min(math.ceil((bytes - most_dead_bytes) * length / bytes), 200, length))
    end
    if length == 0 then call('DEL', dead) end
    if dropped_letters > 0 then call('HINCRBY', key, 'n', dropped_letters) end
end
local function shown(entry) return entry end
local function fitting(entries) return count_within(entries, 2) end
local function ended() end
local function extended() end
