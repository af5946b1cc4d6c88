-- Jobs that come into the queue of their type. Needs job_rules and now.
local records = {}

local function mark_of() return '' end
local function entered(id, payload, name)
    local options, at = string.match(payload, '^([^\n]*\n)()')
    records[#records + 1], records[#records + 2] = id, string.format('w 0 %.0f %d ', now, #name) .. options .. name .. string.sub(payload, at)
    news[#news + 1] = 'added ' .. id
    return '0 0'
end
-- What its worker gets: the entry, and the record behind it.
local function shown(entry, to)
    call('HSET', part('running'), records[1], string.format('1 %.0f %s', now, to))
    return entry .. '\n' .. records[2]
end
