-- What survey reads of things that nobody holds: {format, how many clients wait for it, how much is in it (of a counter its number, as text: Lua's
-- have 53 bits), how much of that is at work, 0, 0},
-- then of a queue how much of it is delayed, its dead letters, 0, and 1 if it is paused, else 0; of a stream its dead letters, and for each group its name,
-- consumers, pending entries and lag (-1: not known). Needs call, now and most.
local plain = {map = 'HLEN', board = 'ZCARD', stream = 'XLEN'}  -- these have no field that names their format

local function read_groups(key, found)
    found[7] = call('XLEN', key .. ':dead')
    for i, group in ipairs(call('XINFO', 'GROUPS', key)) do
        if i > 100 then break end
        most = most - 1
        local of = {}
        for n = 1, #group, 2 do of[group[n]] = group[n + 1] end
        found[4] = found[4] + of.pending
        local at = #found
        found[at + 1], found[at + 2], found[at + 3], found[at + 4] = of.name, of.consumers, of.pending, of.lag or -1
    end
    return found
end

local function in_lanes(key)
    local sum = 0
    for i, text in ipairs(call('ZRANGE', key .. ':lanes', 0, 99, 'WITHSCORES')) do sum = i % 2 == 0 and sum + text or sum end
    return sum
end

local function read_thing(key, kind, word)
    if plain[word] then
        local size = call(plain[word], key)
        if size == 0 and call('EXISTS', key) == 0 then return {''} end
        local found = {word, 0, size, 0, 0, 0}
        return word == 'stream' and read_groups(key, found) or found
    end
    local queue = opened(kind)
    if queue[1] == format then
        local ready = word == 'stealing' and in_lanes(key) or call('LLEN', key .. ':ready') + call('ZCARD', key .. ':ranked')
        local later, held, dead = call('ZCARD', key .. ':later'), call('ZCARD', key .. ':held'), call('XLEN', key .. ':dead')
        return {word, call('ZCARD', key .. ':waiting'), ready + later, held, 0, 0, later, dead, 0, is_paused(queue) and 1 or 0}
    end
    if kind == 'value 1' then
        local ends = call('HGET', key, 'e')
        return {word, 0, ends and tonumber(ends) <= now and 0 or call('HEXISTS', key, 'd'), 0, 0, 0}
    end
    if kind == 'counter 1' then
        local q = call('HMGET', key, 'n', 'e')
        local ended = q[2] and tonumber(q[2]) <= now
        return {word, 0, not ended and q[1] or '0', 0, 0, 0}
    end
    if kind == 'breaker 1' then
        local states = {half_open = 1, open = 2}
        return {word, 0, 1, states[call('HGET', key, 's')] or 0, 0, 0}
    end
    return {''}
end
