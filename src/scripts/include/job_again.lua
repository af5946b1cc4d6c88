-- A job that is to be run again, or at another time. Needs queue_entry, dedup and recent.

-- Another job has its key, or had it within its window.
local function is_key_taken(name, id)
    local holder, until_ms = string.match(call('HGET', dedup, name) or '', '^(%S+) ?(%d*)$')
    return holder and holder ~= id and not (until_ms ~= '' and until_ms + 0 <= now)
end
local function take_key(name, id)
    call('HSET', dedup, name, id)
    call('ZREM', recent, name)
    call('PERSIST', dedup)
    call('PERSIST', recent)
end

-- Its record, with another generation and priority.
local function record_again(text, generation, priority)
    local head, options, links, rest = string.match(text, '^%a %d+( [%d ]* )([^\n\t]*)([^\n]*)(\n.*)$')
    local parents, is_single = string.match(links, '^\t([^\t]*)\t?([^\t]*)')
    if parents or priority ~= 0 then options = string.format('%s\t%s\t%s\t%d', options, parents or '', is_single or '', priority) end
    return 'w ' .. generation .. head .. options .. rest
end
