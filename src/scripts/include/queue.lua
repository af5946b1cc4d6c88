-- Who waits for a lock or a pool, in order of tickets. Needs call, hold, client, key, window, set, del, and was[10] to was[14]: fields h,
-- l, z, m and w<hold>. A ticket's neighbours are the numbers next to it, until one of them leaves: then its q<ticket> names them,
-- '<hold> <before> <after>'. So joining writes no neighbour, and leaving two at most. What a waiter wants may follow as a last word, after
-- its claim window if that is not the usual one: '<window>@<want>'.
local usual_window = '500'
local head, tail, holes = tonumber(was[10]), tonumber(was[11]), tonumber(was[12] or 0)
local suspects, ticket, seen = was[13] or ' ', tonumber(was[14]), {}

-- A place: hold, before, after, what it wants, claim window, last word.
local function node(at)
    local known = seen[at]
    if not known then
        local id, before, after, word = string.match(call('HGET', key, 'q' .. at), '^(%S+) ?(%S*) ?(%S*) ?(%S*)$')
        if after == '' then before, word = nil, before end
        local own, want = string.match(word, '^(%d+)@(.*)$')
        want = want or word
        known = {id, tonumber(before) or at - 1, tonumber(after) or at + 1, want ~= '' and want or nil, tonumber(own or usual_window), word}
        seen[at] = known
    end
    return known
end

local function relink(at, before, after)
    local known = node(at)
    known[2], known[3] = before or known[2], after or known[3]
    set[#set + 1] = 'q' .. at
    set[#set + 1] = known[1] .. ' ' .. known[2] .. ' ' .. known[3] .. (known[6] ~= '' and ' ' .. known[6] or '')
end

local function join(want)
    local word = (window ~= usual_window and window .. '@' or '') .. (want or '')
    tail = (tail or 0) + 1
    head, ticket, seen[tail] = head or tail, tail, {hold, tail - 1, tail + 1, want, tonumber(window), word}
    local n = #set
    set[n + 1], set[n + 2], set[n + 3], set[n + 4] = 'q' .. tail, word ~= '' and hold .. ' ' .. word or hold, 'w' .. hold, tail
end

local function leave(at)
    local id, before, after = unpack(node(at))
    del[#del + 1] = 'q' .. at
    del[#del + 1] = 'w' .. id
    if id == hold then ticket = nil end
    if head == tail then
        head, tail, holes, suspects = nil, nil, 0, ' '
    elseif at == head then
        head, holes = after, holes - (after - at - 1)
    elseif at == tail then
        tail, holes = before, holes - (at - before - 1)
        if node(before)[3] ~= before + 1 then relink(before, nil, before + 1) end
    else
        holes = holes + 1
        relink(before, nil, after)
        relink(after, before, nil)
    end
end

-- At most; an upper bound, since some numbers may be holes.
local function place() return math.min(ticket - head, tail - head - holes) + 1 end

-- Puts what changed into set and del. Without a queue none of its fields stay.
local function put_queue()
    local function put(index, field, value)
        local before = was[index]
        if value and value ~= before and value ~= tonumber(before) then
            set[#set + 1], set[#set + 2] = field, value
        elseif before and not value then
            del[#del + 1] = field
        end
    end
    put(10, 'h', head)
    put(11, 'l', tail)
    put(12, 'z', holes ~= 0 and holes)
    put(13, 'm', suspects ~= ' ' and suspects)
end

local function is_suspect(name) return string.find(suspects, ' ' .. name .. ' ', 1, true) end

-- One that let an offer lapse is suspect, unless it is calling now. The latest 64 are known: each that is forgotten costs a claim window.
local function suspect(id)
    local name = string.match(id, '^[^.]+')
    if not head or name == client or is_suspect(name) then return end
    suspects = suspects .. name .. ' '
    local _, spaces = string.gsub(suspects, ' ', '')
    if spaces > 65 then suspects = string.match(suspects, '^ [^ ]+(.*)$') end
end

-- A client that calls is no suspect.
local function trust()
    local from, to = is_suspect(client)
    if from then suspects = string.sub(suspects, 1, from) .. string.sub(suspects, to + 1) end
end
