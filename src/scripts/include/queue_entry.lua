-- An item, as it stands in lists and sets: '<batch>-<n> <deliveries>[ <priority> <window_ms> <size of its key>]\n[<its key>]<payload>', the
-- id of one that has a key with a d behind it. What is held is known by its token, '<id>.<number of this delivery>'.
local function open(entry)
    local id, deliveries, more, at = string.match(entry, '^(%S+) (%d+)([^\n]*)\n()')
    local priority, window, size = string.match(more, '^ (%S+) (%d+) (%d+)$')
    return id, deliveries + 0, more, at, tonumber(priority or 0), tonumber(window or 0), tonumber(size or 0)
end

-- So that ids sort as they were made.
local function order_of(id)
    local batch, n = string.match(id, '^(%d+)%-(%d+)')
    return string.format('%16s%06d', batch, n)
end

-- Appends to or pops from something of any size: unpack() has a limit.
local function in_chunks(command, where, list)
    for i = 1, #list, 1000 do call(command, where, unpack(list, i, math.min(i + 999, #list))) end
end
