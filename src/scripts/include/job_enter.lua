-- Jobs that come into the queue of their type. Needs job_rules and now.
local records, has_tags, plain_head = {}, false, string.format('w 0 %.0f 0 0 ', now)

local function mark_of() return '' end
local function entered(id, payload, name, window)
    local options, at = string.match(payload, '^([^\n]*\n)()')
    local head = name == '' and plain_head or string.format('w 0 %.0f %d %d ', now, #name, window)
    records[#records + 1], records[#records + 2] = id, head .. options .. name .. string.sub(payload, at)
    has_tags = has_tags or #options > 1
    added[#added + 1] = id
    return '0 0'
end
-- What its worker gets: the entry, and the record behind it.
local function shown(entry)
    local id = open(entry)
    for i = 1, #records, 2 do
        if records[i] == id then return entry .. '\n' .. records[i + 1] end
    end
end
-- It was sent to somebody who heard it.
local function begun(entry, to)
    local id = open(entry)
    call('HSET', part('running'), id, string.format('1 %.0f %s', now, to))
    started[#started + 1] = id
end
