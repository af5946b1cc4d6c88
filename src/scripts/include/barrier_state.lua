-- What happens in a barrier. Needs barrier_read and gate_state.
local open, needed, arrived, dropped = tonumber(was[2] or 0), tonumber(was[4] or 0), tonumber(was[5] or 0), tonumber(was[6] or 0)
local runner, bound, outcomes, outside, set, del = was[7] or '', tonumber(was[8]), was[9] or '', was[12] or ' ', {}, {}

local function arrival(text)
    local generation, ends, ttl = string.match(text, '^(%d+) (%d+) (%d+)$')
    return tonumber(generation), tonumber(ends), tonumber(ttl)
end
local joined, own_end = arrival(was[11] or '')

local function write_arrival(id, generation, ends, ttl)
    set[#set + 1] = 'h' .. id
    set[#set + 1] = string.format('%.0f %.0f %.0f', generation, ends, ttl)
end

local function each_arrival(visit)
    local fields = call('HGETALL', key)
    for i = 1, #fields, 2 do
        if string.sub(fields[i], 1, 1) == 'h' then visit(string.sub(fields[i], 2), arrival(fields[i + 1])) end
    end
end

-- HSET comes first: a server out of memory refuses that one, and then nothing is half done.
local function commit(span)
    call('HSET', key, 'g', open, 'n', needed, 'a', arrived, 'd', dropped, 'r', runner, 'e', bound or '', 'o', outcomes, 'w', outside,
        unpack(set))
    remove(del)
    keep(span)
    set, del = {}, {}
end

-- Ends the open generation for all that arrived; the only place that decides how. Those who wait are told, but for the hold whose answer
-- this is.
local function close(outcome, caller)
    local clients = {}
    each_arrival(function(id, generation, ends)
        if generation == open and ends > 0 and id ~= caller then clients[string.match(id, '^[^.]+')] = true end
        if generation < open - 2 then del[#del + 1] = 'h' .. id end
    end)
    for name in string.gmatch(outside, '%S+') do clients[name] = true end
    outcomes = outcome .. string.sub(outcomes, 1, 99)
    open, needed, arrived, dropped, runner, bound, outside = open + 1, needed - dropped, 0, 0, '', nil, ' '
    commit()
    tell(clients)
end

-- A lease that ran out breaks the open generation. Also the caller is told: this may be a command that it gave up, and it waits.
local function settle()
    if not bound or now < bound then return end
    local lapsed = false
    bound = nil
    each_arrival(function(id, generation, ends, ttl)
        if generation ~= open or ends == 0 then return end
        -- Further away than it is long: the server's clock was set back, and who arrived may be dead.
        if ends > now + ttl then
            ends = now + ttl
            write_arrival(id, generation, ends, ttl)
        end
        lapsed = lapsed or ends <= now
        bound = math.min(bound or ends, ends)
    end)
    if lapsed then close('b') else commit() end
end

-- What the caller is told of a generation in which it arrived. When arrivals are not known any more, its word is taken for that.
local function answer(of)
    if of >= open - 3 and of ~= joined then return {'gone', now} end
    if of == open and runner == hold then return {'run', of, now} end
    if of == open then return {'waiting', of, arrived, bound and bound - now or 0, now} end
    local outcome = string.sub(outcomes, open - of, open - of)
    if outcome == '' then return {'gone', now} end
    return {outcome == 'c' and 'complete' or 'broken', of, now}
end
