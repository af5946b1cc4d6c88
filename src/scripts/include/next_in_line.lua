-- Finds whom to offer what came free: the first in line that can be reached. It is told. Needs queue. Suspects are passed over.
-- A client that nobody heard for (PUBLISH = 0) is passed over too, and dropped once somebody behind it was heard: while a Cluster slot
-- migrates, zero is not death. When nobody can be reached the first gets a 'doubted' offer, which whoever asks next may take.
local publish, numbers = 'PUBLISH', 'NUMSUB'
if string.find(channel, '{', 1, true) then publish, numbers = 'SPUBLISH', 'SHARDNUMSUB' end
local steps = 0

local function tell(name, id)
    local heard = redis.pcall(publish, channel .. name, id)
    return type(heard) == 'number' and heard or -1
end

local function listeners(name)
    local heard = redis.pcall('PUBSUB', numbers, channel .. name)
    return heard[2] or -1
end

-- The ticket, how many heard, and the state of the offer. With fits(want), nothing if the first that can be reached does not fit:
-- that one is not told, and those behind it wait too.
local function next_in_line(fits)
    local reach, silent, chosen, heard, kept, blocked = {}, {}, nil, 0, false, false
    local at = start or head
    while not chosen and at <= tail and steps < 1000 do
        local id, _, after, want = unpack(node(at))
        local name = string.match(id, '^[^.]+')
        local stuck = fits and not fits(want)
        if id == hold then
            chosen, heard = at, silent[1] and listeners(name) or 1
        elseif is_suspect(name) then
            reach[name] = reach[name] or listeners(name)
        elseif reach[name] ~= 0 then
            reach[name] = stuck and listeners(name) or tell(name, id)
            if reach[name] ~= 0 then chosen, heard = at, reach[name] end
        end
        kept = kept or not chosen and not is_suspect(name)
        if chosen then
            blocked = stuck
        else
            if reach[name] == 0 then silent[#silent + 1] = at end
            at, steps = after, steps + 1
        end
    end
    local state = 'offered'
    if not chosen then
        chosen = steps == 1000 and not kept and at <= tail and at or head
        local id, _, _, want = unpack(node(chosen))
        blocked, state = fits and not fits(want), 'doubted'
        if not blocked then heard = tell(string.match(id, '^[^.]+'), id) end
    elseif heard > 0 then
        for _, gone in ipairs(silent) do leave(gone) end
        kept = false
    end
    if chosen ~= head and not kept then start = chosen end
    if blocked then return end
    return chosen, heard, state
end
