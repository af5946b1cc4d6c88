-- Offers a lock that nobody owns to the first in line that can be reached, and tells it. Needs lock_queue. Suspects are passed over.
-- A client that nobody heard for (PUBLISH = 0) is passed over too, and dropped once somebody behind it was heard: while a Cluster slot
-- migrates, zero is not death. When nobody can be reached the first gets a 'doubted' offer, which whoever asks next may take.
local publish, count = 'PUBLISH', 'NUMSUB'
if string.find(channel, '{', 1, true) then publish, count = 'SPUBLISH', 'SHARDNUMSUB' end
local function tell(name, id)
    local heard = redis.pcall(publish, channel .. name, id)
    return type(heard) == 'number' and heard or -1
end

local function pass_on()
    local function listeners(name)
        local heard = redis.pcall('PUBSUB', count, channel .. name)
        return heard[2] or -1
    end

    local reach, silent, chosen, heard, steps, kept = {}, {}, nil, 0, 0, false
    local at = start or head
    while not chosen and at <= tail and steps < 1000 do
        local id = node(at)[1]
        local name = string.match(id, '^[^.]+')
        if id == hold then
            chosen, heard = at, silent[1] and listeners(name) or 1
        elseif is_suspect(name) then
            reach[name] = reach[name] or listeners(name)
        elseif reach[name] ~= 0 then
            reach[name] = tell(name, id)
            if reach[name] ~= 0 then chosen, heard = at, reach[name] end
        end
        kept = kept or not chosen and not is_suspect(name)
        if not chosen then
            if reach[name] == 0 then silent[#silent + 1] = at end
            at, steps = node(at)[3], steps + 1
        end
    end
    state = 'offered'
    if not chosen then
        chosen = steps == 1000 and not kept and at <= tail and at or head
        heard = tell(string.match(node(chosen)[1], '^[^.]+'), node(chosen)[1])
        state = 'doubted'
    elseif heard > 0 then
        for _, gone in ipairs(silent) do leave(gone) end
        kept = false
    end
    if chosen ~= head and not kept then start = chosen end
    owner, ends = node(chosen)[1], now + window
    leave(chosen)
    return heard
end
