-- Jobs that schedules enter into the queues of their types, of several types in one call: as job_push does, of one type. Needs call, key and was (to be set),
-- queue_states, queue_time, publish, channel, retention, base (the key of all jobs), queue_entry, queue_tell and job_tags.
local desks = {}
local alone = {}  -- {type, id, rule, priority, name}: those of which one at a time is run, as in job_single

-- Reads all that is written later: where something is not here (a slot of a cluster that moves), it ends before anything was written.
local function desk_of(type)
    if desks[type] then return desks[type] end
    local queue = base .. ':q:' .. type
    local state = state_at(queue)
    if is_foreign(queue, state) then return nil end
    local parts = {}
    for i, name in ipairs({'ready', 'ranked', 'waiting', 'dedup', 'recent', 'records', 'stats'}) do parts[i] = queue .. ':' .. name end
    call('EXISTS', unpack(parts))
    local is_new, number = state[2] == 0, math.max(state[2] + 1, us)
    state[2] = number
    desks[type] = {queue = queue, state = state, is_new = is_new, now = own_time(state, now), batch = string.format('%.0f', number),
                   singles = {}, count = 0, plain = {}, ranked = {}, records = {}, keys = {}, news = {}}
    return desks[type]
end

-- The id of the job; of the one that there is already, if it is left out.
local function enter_single(desk, type, priority, options, rule, name, payload)
    local queue = desk.queue
    call('EXISTS', queue .. ':links', queue .. ':singles', queue .. ':blocked', queue .. ':line:' .. name)
    local first = desk.singles[name] or call('HGET', queue .. ':singles', name)
    if first and rule == 'k' then return first end
    desk.count = desk.count + 1
    local id = desk.batch .. '-' .. desk.count .. 'f'
    desk.singles[name] = id
    table.insert(desk.records, id)
    table.insert(desk.records, string.format('w 0 %.0f 0 0 ', desk.now) .. options .. '\t\ts\n' .. payload)
    table.insert(desk.news, 'added ' .. id)
    table.insert(alone, {type, id, rule, priority, name})
    return id
end

-- The id of the job; of the one that has its key already, if there is one.
local function enter(desk, priority, window, options, name, payload)
    if name ~= '' then
        local twin, until_ms = string.match(desk.keys[name] or call('HGET', desk.queue .. ':dedup', name) or '', '^(%S+) ?(%d*)$')
        if twin and not (until_ms ~= '' and until_ms + 0 <= desk.now) then return twin end
    end
    desk.count = desk.count + 1
    local id, is_plain = desk.batch .. '-' .. desk.count, priority == '0' and name == ''
    if name ~= '' then id, desk.keys[name] = id .. 'd', id .. 'd' end
    local entry = is_plain and id .. ' 0\n0 0' or string.format('%s 0 %s %s %d\n%s0 0', id, priority, window, #name, name)
    if priority == '0' then
        table.insert(desk.plain, entry)
    else
        table.insert(desk.ranked, -priority)
        table.insert(desk.ranked, order_of(id) .. ' ' .. entry)
    end
    table.insert(desk.records, id)
    local rank = priority == '0' and '\n' or '\t\t\t' .. priority .. '\n'
    table.insert(desk.records, string.format('w 0 %.0f %d %s ', desk.now, #name, window) .. options .. rank .. name .. payload)
    table.insert(desk.news, 'added ' .. id)
    return id
end

local function put(desk, type, types)
    local queue = desk.queue
    renew(queue, desk.state, desk.now)
    if desk.is_new then call('ZADD', types, 0, type) end
    in_chunks('HSET', queue .. ':records', desk.records)
    tag_all(queue, desk.records)
    in_chunks('RPUSH', queue .. ':ready', desk.plain)
    in_chunks('ZADD', queue .. ':ranked', desk.ranked)
    for name, id in pairs(desk.keys) do
        call('HSET', queue .. ':dedup', name, id)
        call('ZREM', queue .. ':recent', name)
    end
    if next(desk.keys) then
        call('PERSIST', queue .. ':dedup')
        call('PERSIST', queue .. ':recent')
    end
    call('HINCRBY', queue .. ':stats', 'added', desk.count)
end

-- May fail (a forbidden channel), so it comes last.
local function announce(desk)
    key, was = desk.queue, desk.state
    tell(desk.queue .. ':waiting', 'r', math.min(desk.count, 8))
    redis.pcall(publish, desk.queue .. ':events', table.concat(desk.news, '\n'))
end
