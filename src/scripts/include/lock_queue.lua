-- Who waits for the lock, in order of tickets. Needs lock_state. A ticket's neighbours are the numbers next to it, until one of them
-- leaves: then its q<ticket> names them, '<hold> <before> <after>'. So joining writes no neighbour, and leaving two at most.
local head, tail, holes, start = tonumber(was[10]), tonumber(was[11]), tonumber(was[12] or 0), tonumber(was[13])
local suspects, ticket, seen = was[14] or ' ', tonumber(was[15]), {}

local function node(at)
    local known = seen[at]
    if not known then
        local text = call('HGET', key, 'q' .. at)
        local id, before, after = string.match(text, '^(%S+) (%S+) (%S+)$')
        known = {id or text, tonumber(before) or at - 1, tonumber(after) or at + 1}
        seen[at] = known
    end
    return known
end

local function relink(at, before, after)
    local known = node(at)
    known[2], known[3] = before or known[2], after or known[3]
    set[#set + 1] = 'q' .. at
    set[#set + 1] = known[1] .. ' ' .. known[2] .. ' ' .. known[3]
end

local function join()
    tail = (tail or 0) + 1
    head, ticket, seen[tail] = head or tail, tail, {hold, tail - 1, tail + 1}
    local n = #set
    set[n + 1], set[n + 2], set[n + 3], set[n + 4] = 'q' .. tail, hold, 'w' .. hold, tail
end

local function leave(at)
    local id, before, after = unpack(node(at))
    del[#del + 1] = 'q' .. at
    del[#del + 1] = 'w' .. id
    if start == at then start = after end
    if head == tail then
        head, tail, holes, start, suspects = nil, nil, 0, nil, ' '
    elseif at == head then
        head, holes = after, holes - (after - at - 1)
    elseif at == tail then
        tail, holes = before, holes - (at - before - 1)
        if node(before)[3] ~= before + 1 then relink(before, nil, before + 1) end
        if start and start > tail then start = tail + 1 end
    else
        holes = holes + 1
        relink(before, nil, after)
        relink(after, before, nil)
    end
end

-- commit() for scripts that changed the queue. Without a queue none of its fields stay.
local function commit_all()
    local fields, values = {'h', 'l', 'z', 'g', 'm'}, {head or '', tail or '', holes, start or '', suspects}
    local none = {h = '', l = '', z = 0, g = '', m = ' '}
    for i = 1, 5 do
        local field, value, before = fields[i], values[i], was[9 + i] or ''
        if value == none[field] then
            if was[9 + i] then del[#del + 1] = field end
        elseif value ~= before and value ~= tonumber(before) then
            set[#set + 1] = field
            set[#set + 1] = value
        end
    end
    commit()
end

local function is_suspect(name) return string.find(suspects, ' ' .. name .. ' ', 1, true) end

-- A client that calls is no suspect.
local function trust()
    local from, to = is_suspect(client)
    if from then suspects, start = string.sub(suspects, 1, from) .. string.sub(suspects, to + 1), nil end
end

-- An owner whose time is over is none any more, nor is one whose offer is doubted and in the way of somebody who calls. One that did
-- not take what it was offered is suspect, unless it is calling now.
local function settle(wanted)
    if not owner or (ends > now and not (wanted and state == 'doubted' and owner ~= hold)) then return end
    local name = string.match(owner, '^[^.]+')
    if state ~= 'held' and head and name ~= client and not is_suspect(name) then
        suspects = suspects .. name .. ' '
        if #suspects > 2000 then suspects = string.match(suspects, '^ [^ ]+(.*)$') end
    end
    owner = nil
end
