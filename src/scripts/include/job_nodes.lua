-- Jobs that have parents, as links say. Needs job_sides.
local function read_node(text, one, id)
    local state, pending, bad, policy, when, priority, single = string.match(text, '^(%S) (%-?%d+) (%-?%d+) (%S) (%S+) (%S+) (%S)$')
    return {side = one, id = id, state = state, pending = pending + 0, bad = bad + 0, policy = policy, when = when, priority = priority, single = single}
end

-- Where the jobs of these names are, and what links say of those that were not read yet: load_nodes() reads them.
local missing = {}
local function places_of(names)
    local found = {}
    for type, id in string.gmatch(names, '([^/ ]+)/(%S+)') do
        local one = side_of(type)
        found[#found + 1] = {one, id}
        if one.nodes[id] == nil then
            one.nodes[id] = false
            missing[one] = missing[one] or {}
            table.insert(missing[one], id)
        end
    end
    return found
end
local function load_nodes()
    for one, ids in pairs(missing) do
        for first = 0, #ids - 1, 1000 do
            local fields = {}
            for i = first + 1, math.min(first + 1000, #ids) do fields[i - first] = 'o' .. ids[i] end
            for i, text in ipairs(call('HMGET', one.links, unpack(fields))) do
                if text then one.nodes[ids[first + i]] = read_node(text, one, ids[first + i]) end
            end
        end
    end
    missing = {}
end
