-- Writes what was gathered of jobs in the queues of several types. Needs job_sides, job_commit and job_forget.

-- As tell() and tell_time() in the queue of this type.
local function say_when(one, at)
    local heard = 0
    for _, name in ipairs(call('ZRANGE', one.q .. ':waiting', 0, 31)) do
        if redis.pcall(publish, channel .. name, string.format('d%.0f', at - one.now)) ~= 0 then heard = heard + 1 end
        if heard == 2 then break end
    end
    return heard
end
local function wake(one, most)
    local told = 0
    while told < most do
        local first = call('ZPOPMIN', one.q .. ':waiting')[1]
        if not first then break end
        if redis.pcall(publish, channel .. first, 'r') ~= 0 then told = told + 1 end
    end
    if told == 0 then return end
    one.state[4] = 0
    save(one.q, one.state)
    say_when(one, one.now + 500)  -- who was told may sleep: the next ones look whether it has come
end
local function wake_then(one)
    if one.earliest < one.state[5] then
        one.state[5] = one.earliest
        save(one.q, one.state)
    end
    if not is_paused(one.state) then say_when(one, one.earliest) end
end

-- Of a list of entries, with scores in front of them if step is 2, those of jobs that were not displaced since.
local function still_entered(one, list, step)
    local found = {}
    for i = step, #list, step do
        if one.entered[string.match(list[i], '(%d+%-%d+%a*) ')] ~= 'dropped' then
            for n = i - step + 1, i do found[#found + 1] = list[n] end
        end
    end
    return found
end

-- Writes what was gathered. Returns how many can be run now of the type of this queue, and when the next one can be; others' workers are told.
local function commit_sides(is_taking)
    for type, one in pairs(sides) do
        local set, inside, outside, gone, when = {}, {}, {}, {}, string.format('%.0f', one.now)
        local function append(list, first, second) list[#list + 1], list[#list + 2] = first, second end
        for id, node in pairs(one.nodes) do
            if node and node.changed then
                append(set, 'o' .. id, string.format('%s %d %d %s %s %s %s', node.state, node.pending, node.bad, node.policy, node.when, node.priority, node.single))
            end
        end
        in_chunks('HSET', one.links, set)
        for id, is in pairs(one.blocked) do
            if is then append(inside, when, id) else append(outside, id) end
        end
        in_chunks('ZADD', one.q .. ':blocked', inside)
        in_chunks('ZREM', one.q .. ':blocked', outside)
        local lists = {completed = {}, failed = {}, cancelled = {}}
        for id, state in pairs(one.ended) do
            if state then append(lists[state], when, id) else append(gone, id) end
        end
        for state, list in pairs(lists) do
            in_chunks('ZREM', one.q .. ':' .. state, gone)
            in_chunks('ZADD', one.q .. ':' .. state, list)
        end
        if #one.added > 0 then
            add_up_at(one, 'added', #one.added)
            table.insert(one.news, 1, 'added ' .. table.concat(one.added, ' '))
        end
        local at_once = 0
        for what, n in pairs(one.tally) do
            local total = call('HINCRBY', one.q .. ':stats', what, n)
            if lists[what] then at_once = math.max(at_once, quota(total, n)) end
        end
        if one.has_dropped then
            one.ready, one.ranked, one.later = still_entered(one, one.ready, 1), still_entered(one, one.ranked, 2), still_entered(one, one.later, 2)
        end
        if one.state.is_back and #one.later > 0 then save(one.q, one.state) end
        in_chunks('RPUSH', one.q .. ':ready', one.ready)
        in_chunks('ZADD', one.q .. ':ranked', one.ranked)
        in_chunks('ZADD', one.q .. ':later', one.later)
        if next(one.ended) and call('EXISTS', one.q .. ':waiters') == 1 then
            local ids = {}
            for id, state in pairs(one.ended) do
                if state then ids[#ids + 1] = id end
            end
            for _, id in ipairs(take_waiters(one.q, ids)) do tell_end(one.q, id, one.ended[id], '') end
        end
        if at_once > 0 then forget(one.q, one.now, math.min(at_once, 500)) end
        if #one.news > 0 then redis.pcall(publish, one.q .. ':events', table.concat(one.news, '\n')) end
        local count = #one.ready + #one.ranked / 2
        if count > 0 and not (is_taking and type == here or is_paused(one.state)) then wake(one, math.min(count, 8)) end
        if one.earliest < 1e15 then wake_then(one) end
    end
    local mine = sides[here]
    if call('EXISTS', todo) == 1 then
        if mine then mine.earliest = math.min(mine.earliest, mine.now) end
        for _, one in pairs(sides) do
            if (say_when(one, one.now) or 0) > 0 then break end
        end
    end
    return mine and #mine.ready + #mine.ranked / 2 or 0, mine and mine.earliest or 1e15
end
