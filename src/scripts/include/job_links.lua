-- What the end of a job, or its return, means for its children, and theirs. Needs job_sides.
local agenda = {}  -- {side, id, its children, what is added to their pending and bad parents, why}

local function read_node(text, one, id)
    local state, pending, bad, policy, when, priority = string.match(text, '^(%S) (%d+) (%d+) (%S) (%S+) (%S+)')
    return {side = one, id = id, state = state, pending = pending + 0, bad = bad + 0, policy = policy, when = when, priority = priority}
end

-- Those of them that are remembered.
local function nodes_of(names)
    local found, missing = {}, {}
    for type, id in string.gmatch(names, '([^/ ]+)/(%S+)') do
        local one = side_of(type)
        found[#found + 1] = {one, id}
        if one.nodes[id] == nil then
            one.nodes[id] = false
            missing[one] = missing[one] or {}
            table.insert(missing[one], id)
        end
    end
    for one, ids in pairs(missing) do
        for first = 0, #ids - 1, 1000 do
            local fields = {}
            for i = first + 1, math.min(first + 1000, #ids) do fields[i - first] = 'o' .. ids[i] end
            for i, text in ipairs(call('HMGET', one.links, unpack(fields))) do
                if text then one.nodes[ids[first + i]] = read_node(text, one, ids[first + i]) end
            end
        end
    end
    local nodes = {}
    for _, pair in ipairs(found) do nodes[#nodes + 1] = pair[1].nodes[pair[2]] or nil end
    return nodes
end

local function tell_children(one, id, pending, bad, why)
    local names = call('HGET', one.links, 'k' .. id)
    if names then agenda[#agenda + 1] = {names = names, pending = pending, bad = bad, why = why} end
end

-- It has ended in this state, or was in it and is to be run again.
local function leave(one, id, state)
    local is_bad = state ~= 'completed'
    tell_children(one, id, -1, is_bad and 1 or 0,
                  is_bad and 'its parent ' .. one.type .. '/' .. id .. (state == 'failed' and ' failed' or ' was cancelled') or nil)
end
local function come_back(one, id, state) tell_children(one, id, 1, state ~= 'completed' and -1 or 0) end

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
        come_back(one, id, 'failed')
    end
    if node.state == 'b' and node.pending == 0 then
        node.state, one.blocked[id] = '-', false
        one.news[#one.news + 1] = 'released ' .. id
        enter(one, id, 0, node.when, node.priority)
    end
    node.changed = true
end

local function spread()
    local at = 1
    while agenda[at] do
        local what = agenda[at]
        for _, node in ipairs(nodes_of(what.names)) do
            node.pending, node.bad = node.pending + what.pending, node.bad + what.bad
            weigh(node, what.why)
        end
        agenda[at] = true  -- their names are not needed any more
        at = at + 1
    end
end
