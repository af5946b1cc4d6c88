-- Jobs that come into the queue of their type. Needs job_rules and queue_once.
local records, has_tags, plain_head = {}, false, 'w 0 ' .. now_text .. ' 0 0 '

local function entered(id, payload, name, window, priority)
    local n = #records
    if name == '' and (priority or '0') == '0' then
        records[n + 1], records[n + 2] = id, plain_head .. payload
    else
        local options, at = string.match(payload, '^([^\n]*\n)()')
        if priority ~= '0' then options = string.sub(options, 1, -2) .. '\t\t\t' .. priority .. '\n' end
        records[n + 1], records[n + 2] = id, 'w 0 ' .. now_text .. ' ' .. #name .. ' ' .. window .. ' ' .. options .. name .. string.sub(payload, at)
    end
    has_tags = has_tags or string.byte(payload) ~= 10
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
    call('HSET', part('running'), id, '1 ' .. now_text .. ' ' .. to)
    started[#started + 1] = id
end
