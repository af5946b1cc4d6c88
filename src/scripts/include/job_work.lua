-- Jobs that are taken, and what became of them. Needs job_rules, queue_entry, now and worker.
local function attempt_of(entry)
    local _, _, _, at, _, _, size = open(entry)
    return string.match(entry, '^(%d+) (%d+)$', at + size)
end
local function id_of(token) return string.match(token, '^(%S+)%.%d+$') end

-- A worker that dies is no failure of the job, but one that kills its workers must end.
local function is_exhausted(entry, deliveries)
    local _, failures = attempt_of(entry)
    return deliveries % 1000000 - (failures or 0) >= most_deliveries
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

-- What its worker gets: the entry, and the record behind it.
local function shown(entry)
    local text = call('HGET', part('records'), (open(entry)))
    return text and entry .. '\n' .. text or ''
end
