-- What survey reads of things that nobody holds: {format, how many clients wait for it, how much is in it, how much of that is at work, 0, 0}.
-- Needs call.
local plain = {map = 'HLEN', board = 'ZCARD', stream = 'XLEN'}  -- these have no field that names their format

local function in_lanes(key)
    local sum = 0
    for i, text in ipairs(call('ZRANGE', key .. ':lanes', 0, 99, 'WITHSCORES')) do sum = i % 2 == 0 and sum + text or sum end
    return sum
end

local function read_thing(key, kind, word)
    if plain[word] then
        local size = call(plain[word], key)
        if size == 0 and call('EXISTS', key) == 0 then return {''} end
        return {word, 0, size, 0, 0, 0}
    end
    if kind == 'queue 1' then
        local ready = word == 'lanes' and in_lanes(key) or call('LLEN', key .. ':ready') + call('ZCARD', key .. ':ranked')
        return {word, call('ZCARD', key .. ':waiting'), ready + call('ZCARD', key .. ':later'), call('ZCARD', key .. ':held'), 0, 0}
    end
    if kind == 'value 1' then return {word, 0, call('HEXISTS', key, 'd'), 0, 0, 0} end
    if kind == 'counter 1' then return {word, 0, tonumber(call('HGET', key, 'n')), 0, 0, 0} end
    if kind == 'breaker 1' then
        local states = {half_open = 1, open = 2}
        return {word, 0, 1, states[call('HGET', key, 's')] or 0, 0, 0}
    end
    return {''}
end
