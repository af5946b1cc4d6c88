-- Finds whom to offer what came free: the first in line that can be reached. It is told. Needs queue. Places of suspects, and of clients
-- that nobody heard for (PUBLISH = 0), are taken out of the queue on the way: who is alive after all asks again, and joins at its end.
local longest_walk = 500  -- places that are taken out in one call; then `more` is true, and the caller asks again
local publish, numbers = 'PUBLISH', 'NUMSUB'
if string.find(channel, '{', 1, true) then publish, numbers = 'SPUBLISH', 'SHARDNUMSUB' end
local walked, more, silent = 0, false, {}

local function tell(name, id)
    local heard = redis.pcall(publish, channel .. name, id)
    return type(heard) == 'number' and heard or -1
end

local function listeners(name)
    local heard = redis.pcall('PUBSUB', numbers, channel .. name)
    return heard[2] or -1
end

-- How many hear of an offer to this place, -1 if that cannot be known; 0, and it is no place any more, if it is not to get one. One that is
-- blocked is not told. Whoever calls is there.
local function reach(at, blocked)
    local id = node(at)[1]
    local name = string.match(id, '^[^.]+')
    local heard = 0
    if id == hold then
        heard = 1
    elseif not silent[name] and not is_suspect(name) then
        heard = blocked and listeners(name) or tell(name, id)
    end
    if heard == 0 then
        silent[name] = true
        leave(at)
        walked = walked + 1
        more = head and walked >= longest_walk
    end
    return heard
end

-- The ticket, and how many heard. Nothing: nobody is left, the walk is not finished (`more`), or, with fits(want), the first that can be
-- reached wants what is not there yet; those behind it wait too.
local function next_in_line(fits)
    while head and not more do
        local at = head
        local blocked = fits and not fits(node(at)[4])
        local heard = reach(at, blocked)
        if heard ~= 0 then
            if blocked then return end
            return at, heard
        end
    end
end
