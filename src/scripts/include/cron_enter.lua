-- Jobs that schedules enter into the queues of their types, of several types in one call: as job_push does, of one type. Needs call, key (to be set),
-- format, queue_time, publish, channel, retention, base (the key of all jobs), queue_entry, queue_tell and job_tags.
local desks = {}
local alone = {}  -- {type, id, rule, priority, name}: those of which one at a time is run, as in job_single

-- Reads all that is written later: where something is not here (a slot of a cluster that moves), it ends before anything was written.
local function desk_of(type)
    if desks[type] then return desks[type] end
    local queue = base .. ':q:' .. type
    local was = call('HMGET', queue, 'v', 'l', 'x', 's', 'c')
    if was[1] ~= format and (was[1] or call('EXISTS', queue) == 1) then return nil end
    local parts = {}
    for i, name in ipairs({'ready', 'ranked', 'waiting', 'dedup', 'recent', 'records', 'stats'}) do parts[i] = queue .. ':' .. name end
    call('EXISTS', unpack(parts))
    -- The queue's own time, as in queue_once.
    local ahead, latest = tonumber(was[4] or 0), tonumber(was[5] or 0)
    local set_back = math.max(latest - now - ahead, 0)
    desks[type] = {queue = queue, is_new = not was[2], ends = tonumber(was[3] or 0), now = now + ahead + set_back,
                   ahead = set_back > 0 and string.format('%.0f', ahead + set_back), batch = string.format('%.0f', math.max((was[2] or 0) + 1, us_text + 0)),
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
    table.insert(desk.records, string.format('w 0 %.0f %d %s ', desk.now, #name, window) .. options .. '\n' .. name .. payload)
    table.insert(desk.news, 'added ' .. id)
    return id
end

local function put(desk, type, types)
    local queue, kept = desk.queue, math.max(2 * retention, 300000)
    call('HSET', queue, 'l', desk.batch, 'c', string.format('%.0f', desk.now))
    if desk.ahead then call('HSET', queue, 's', desk.ahead) end
    if desk.ends - desk.now < kept / 2 then
        call('HSET', queue, 'v', format, 'x', string.format('%.0f', desk.now + kept))
        call('PEXPIRE', queue, kept)
    end
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
    key = desk.queue
    tell(desk.queue .. ':waiting', 'r', math.min(desk.count, 8))
    redis.pcall(publish, desk.queue .. ':events', table.concat(desk.news, '\n'))
end
