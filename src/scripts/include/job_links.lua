-- What the end of a job, or its return, means for its children, and theirs. Needs job_sides, job_nodes, job_single and job_batch.
local agenda, open_for = {}, {}  -- {names of children, what is added to their pending and bad parents, why}; of parents that completed: by those names

-- It has ended in this state, or was in it and is to be run again. Its children, batch and name as a single one, and whether it was told to stop, are in links.
local function left(one, id, state, names, batch, single, stops)
    if names and state ~= 'completed' then
        local why = 'its parent ' .. one.type .. '/' .. id .. (state == 'failed' and ' failed' or ' was cancelled')
        agenda[#agenda + 1] = {names = names, pending = -1, bad = 1, why = why}
    elseif names and open_for[names] then
        open_for[names].pending = open_for[names].pending - 1
    elseif names then
        open_for[names] = {names = names, pending = -1, bad = 0}
        agenda[#agenda + 1] = open_for[names]
    end
    if batch then count_in(batch, state, 1) end
    if single then
        local name = string.match(single, '^%S %S+ %S+ (.*)$')
        call('ZREM', one.q .. ':line:' .. name, id)
        if not stops then pass_on(one, id, name) end
    end
end
function leave(one, id, state) left(one, id, state, unpack(call('HMGET', one.links, 'k' .. id, 'b' .. id, 's' .. id, 'z' .. id))) end

-- Those that left at the same time, ids and states. What links say of them is read together; of single ones only if any wait or run, for others are
-- not concerned.
local function leave_all(one, list)
    local size = call('EXISTS', one.q .. ':singles') == 1 and 4 or 2
    for first = 1, #list, 400 do
        local fields, texts, at = {}, nil, 0
        for i = first, math.min(first + 398, #list), 2 do
            local id = list[i]
            fields[at + 1], fields[at + 2] = 'k' .. id, 'b' .. id
            if size == 4 then fields[at + 3], fields[at + 4] = 's' .. id, 'z' .. id end
            at = at + size
        end
        texts, at = call('HMGET', one.links, unpack(fields)), 0
        for i = first, math.min(first + 398, #list), 2 do
            if list[i + 1] == 'over' then
                stopped_at_last(one, list[i])
            else
                left(one, list[i], list[i + 1], texts[at + 1], texts[at + 2], size == 4 and texts[at + 3], size == 4 and texts[at + 4])
            end
            at = at + size
        end
    end
end
local function come_back(one, id, state)
    local is = call('HMGET', one.links, 'k' .. id, 'b' .. id)
    if is[1] then agenda[#agenda + 1] = {names = is[1], pending = 1, bad = state ~= 'completed' and -1 or 0} end
    if is[2] then count_in(is[2], state, -1) end
end

-- Its parents let it be run.
local function begin(one, id, when, priority, is_single)
    if not is_single then
        one.news[#one.news + 1] = 'released ' .. id
        enter(one, id, 0, when, priority)
        return
    end
    local first = find_turn(one, id, single_of(one, id))
    if not first then return end
    close(one, id, 'cancelled', one.type .. '/' .. first .. ' waits or runs already')
    leave(one, id, 'cancelled')
end

-- What its parents mean for a job now.
local function weigh(node, why)
    local one, id = node.side, node.id
    if node.state == 'b' and node.bad > 0 and node.policy ~= 'g' then
        local state = node.policy == 's' and 'cancelled' or 'failed'
        node.state, one.blocked[id] = 'd', false
        close(one, id, state, why)
        leave(one, id, state)
    elseif node.state == 'd' and node.bad == 0 then
        node.state, one.ended[id], one.blocked[id] = 'b', false, true
        one.news[#one.news + 1] = 'requeued ' .. id
        come_back(one, id, node.policy == 's' and 'cancelled' or 'failed')
    end
    if node.state == 'b' and node.pending == 0 then
        node.state, one.blocked[id] = '-', false
        begin(one, id, node.when, node.priority, node.single == 's')
    end
    node.changed = true
end

local function spread()
    local at, seen = 1, 0  -- places are known of so many
    while agenda[at] do
        if at > seen then
            local size = 0
            while agenda[seen + 1] and size < 100000 do
                seen = seen + 1
                size = size + #agenda[seen].names
                agenda[seen].places = places_of(agenda[seen].names)
            end
            load_nodes()
        end
        local what = agenda[at]
        open_for[what.names] = nil
        for _, place in ipairs(what.places) do
            local node = place[1].nodes[place[2]]
            if node then
                node.pending, node.bad = math.max(node.pending + what.pending, 0), node.bad + what.bad
                weigh(node, what.why)
            end
        end
        agenda[at] = true  -- their names are not needed any more
        at = at + 1
    end
end
