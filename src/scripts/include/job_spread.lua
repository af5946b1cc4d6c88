-- What it means for a job that its parents end, or come back. Needs job_links and what that needs.

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
    if node.state == 'b' and node.pending <= 0 then
        node.state, one.blocked[id] = '-', false
        begin(one, id, node.when, node.priority, node.single == 's')
    end
    node.changed = true
end

-- In the order in which it happened: while work is left in todo, all that is behind it is appended there. The first ones of agenda, so many, come from its front.
local function spread(first_ones)
    local at, seen, last = 1, 0, 1e9  -- seen: places are known of so many
    if #agenda > 0 and call('EXISTS', todo) == 1 then last = first_ones or 0 end
    while agenda[at] and at <= last and nodes_left > 0 do
        if at > seen then
            local size = 0
            while agenda[seen + 1] and size < 8000 do
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
                node.pending, node.bad = node.pending + what.pending, node.bad + what.bad
                weigh(node, what.why)
            end
        end
        nodes_left = nodes_left - #what.places
        agenda[at] = true  -- their names are not needed any more
        at = at + 1
    end
    while agenda[at] do
        local what = agenda[at]
        call('RPUSH', todo, string.format('n %d %d %s\n', what.pending, what.bad, what.why or '') .. what.names)
        at = at + 1
    end
    agenda, open_for = {}, {}
end
