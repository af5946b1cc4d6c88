-- Jobs that are taken, and what became of them. Needs job_rules, read_within, queue_entry, now and worker.
local function attempt_of(entry)
    local _, _, _, at, _, _, size = open(entry)
    return string.match(entry, '^(%d+) (%d+)$', at + size)
end
local function id_of(token) return string.match(token, '^(%S+)%.%d+$') end

-- A worker that dies is no failure of the job, but a job that kills its workers must end. Counted are the leases that ended in a row: since the last try
-- that ended otherwise or told of progress. Returns how many, if that is too many.
local function is_exhausted(entry, deliveries)
    local _, failures = attempt_of(entry)
    local number = deliveries % 1000000
    local crashes = number - (failures or 0)
    if crashes < most_deliveries then return false end
    local checkpoint = tonumber(call('HGET', part('checkpoints'), (open(entry))) or 0)
    if checkpoint <= deliveries then crashes = math.min(crashes, deliveries - checkpoint, number) end
    return crashes >= most_deliveries and crashes
end

-- Its worker lived through this delivery.
local function set_checkpoint(entry, deliveries)
    local _, failures = attempt_of(entry)
    if deliveries % 1000000 - (failures or 0) > 1 then call('HSET', part('checkpoints'), (open(entry)), deliveries) end
end

local function tell_trail(id, deliveries, reason)
    local trail = call('HGET', part('trail'), id) or ''
    call('HSET', part('trail'), id, string.sub(trail, -16000) .. string.format('%.0f %d %s\t%s\n', now, deliveries, worker, string.gsub(reason, '\n', ' ')))
end

local function bury(entry, deliveries, reason)
    local id = open(entry)
    tell_trail(id, deliveries, reason)
    end_job('failed', id, '')
end

local function ended(token) end_job('completed', id_of(token), '') end

local dropped_letters = 0  -- jobs have no dead letters

-- How many of these entries, from the second on, are within the budget with their records, which job_take needs.
local texts
local function fitting(entries)
    texts = read_within(#entries - 1, 1, function(from, n)
        local some = {}
        for i = 1, n do some[i] = string.match(entries[from + i + 1], '^%S+') end
        return call('HMGET', part('records'), unpack(some))
    end)
    for i = 1, #texts do texts[i] = texts[i] or '' end
    return count_within(texts, 1)
end

-- What its worker gets: the entry, and the record behind it.
local function shown(entry)
    local text = call('HGET', part('records'), (open(entry)))
    return text and entry .. '\n' .. text or ''
end
