-- Jobs of the same name, of any type, for what concerns several of them at once. Needs job_rules, queue_rules, queue_entry and server_now.
--   links    hash of a type, for jobs with an f in their id, and for those that such jobs wait for:
--     k<id>  '<type>/<id> ...': its children
--     o<id>  '<state> <pending> <bad> <policy> <when> <priority> <s: it is single>': it has parents, of which so many have not ended and so many failed or were
--            cancelled. State: b (blocked), d (ended because of them), - (neither). Policy when one is bad: f (it fails), s (skipped), g (goes on)
--   blocked  sorted set of a type: ids of jobs that wait for others, by the time, ms
local base, here = string.match(key, '^(.*):q:([^:]+)$')
local sides = {}
states[key] = was

local function side_of(type)
    if not sides[type] then
        local q = base .. ':q:' .. type
        local state = state_at(q)
        sides[type] = {type = type, q = q, links = q .. ':links', nodes = {}, blocked = {}, ended = {}, ready = {}, ranked = {}, later = {},
                       earliest = 1e15, added = {}, news = {}, tally = {}, state = state, now = own_time(state, server_now)}
    end
    return sides[type]
end

local function add_up_at(one, what, n) one.tally[what] = (one.tally[what] or 0) + n end

-- To be run: at once, or then.
local function enter(one, id, generation, when, priority)
    local more = priority + 0 ~= 0 and ' ' .. priority .. ' 0 0' or ''
    local entry = generation == 0 and id .. ' 0' .. more .. '\n0 0' or
        string.format('%s %d%s\n%d 0', id, generation % 2000 * 1000000, more, generation)
    local at = one.now + (string.byte(when) == 64 and string.sub(when, 2) - server_now or when)
    if at > one.now then
        one.later[#one.later + 1], one.later[#one.later + 2] = string.format('%.0f', at), entry
        one.earliest = math.min(one.earliest, at)
    elseif more ~= '' then
        one.ranked[#one.ranked + 1], one.ranked[#one.ranked + 2] = -priority, order_of(id) .. ' ' .. entry
    else
        one.ready[#one.ready + 1] = entry
    end
end

-- It has ended without anybody's work.
local function close(one, id, state, why)
    local trail = call('HGET', one.q .. ':trail', id) or ''
    call('HSET', one.q .. ':trail', id, string.sub(trail, -16000) .. string.format('%.0f 0 -\t%s\n', one.now, why))
    one.ended[id] = state
    one.news[#one.news + 1] = state .. ' ' .. id
    add_up_at(one, state, 1)
end

-- As tell() and tell_time() in the queue of this type.
local function say_when(one, at)
    local heard = 0
    for _, name in ipairs(call('ZRANGE', one.q .. ':waiting', 0, 31)) do
        if redis.pcall(publish, channel .. name, string.format('d%.0f', at - one.now)) ~= 0 then heard = heard + 1 end
        if heard == 2 then break end
    end
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
    say_when(one, one.earliest)
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
        for what, n in pairs(one.tally) do call('HINCRBY', one.q .. ':stats', what, n) end
        if one.state.is_back and #one.later > 0 then save(one.q, one.state) end
        in_chunks('RPUSH', one.q .. ':ready', one.ready)
        in_chunks('ZADD', one.q .. ':ranked', one.ranked)
        in_chunks('ZADD', one.q .. ':later', one.later)
        local has_waiters = next(one.ended) and call('EXISTS', one.q .. ':waiters') == 1
        for id, state in pairs(has_waiters and one.ended or {}) do
            if state and call('HDEL', one.q .. ':waiters', id) == 1 then redis.pcall(publish, one.q .. ':ended:' .. id, state) end
        end
        if #one.news > 0 then redis.pcall(publish, one.q .. ':events', table.concat(one.news, '\n')) end
        local count = #one.ready + #one.ranked / 2
        if count > 0 and not (is_taking and type == here) then wake(one, math.min(count, 8)) end
        if one.earliest < 1e15 then wake_then(one) end
    end
    local mine = sides[here]
    return mine and #mine.ready + #mine.ranked / 2 or 0, mine and mine.earliest or 1e15
end
