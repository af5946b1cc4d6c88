-- What is remembered of jobs that ended. Needs job_rules.

-- They have no tags any more.
local function untag(gone)
    local empty = {}
    for i, text in ipairs(call('HMGET', part('records'), unpack(gone))) do
        for tag in string.gmatch(text and string.match(text, '^%a [%d. e+-]*tags=(%S+)') or '', '[^,]+') do
            call('ZREM', part('tag:' .. tag), gone[i])
            if call('EXISTS', part('tag:' .. tag)) == 0 then empty[#empty + 1] = tag end
        end
    end
    if #empty > 0 then call('ZREM', part('tags'), unpack(empty)) end
end

-- What is kept of them besides their place among those that ended, and links.
function erase(gone)
    local has_more = call('EXISTS', part('tags'), part('results'), part('trail'), part('progress')) > 0
    if has_more and call('EXISTS', part('tags')) == 1 then untag(gone) end
    in_chunks('HDEL', part('records'), gone)
    for _, name in ipairs(has_more and {'results', 'trail', 'progress'} or {}) do in_chunks('HDEL', part(name), gone) end
end

-- Of jobs that are to be forgotten, those that may be: the results of the others are wanted by children that have not completed. These
-- are put behind the rest.
local function keep_awaited(state, gone)
    local links, base, kept, free, fields, dropped, when = part('links'), string.match(key, '^(.*:q:)'), {}, {}, {}, {}, string.format('%.0f', now)
    local awaited = {}  -- by the names of the children, which brothers share
    local function is_awaited(names)
        local all = {}
        for type, id in string.gmatch(names, '([^/ ]+)/(%S+)') do all[#all + 1] = {base .. type, id} end
        for i = #all, 1, -1 do
            local q, id = all[i][1], all[i][2]
            if call('HEXISTS', q .. ':records', id) == 1 and not call('ZSCORE', q .. ':completed', id) then return true end
        end
        return false
    end
    for i, id in ipairs(gone) do fields[i] = 'k' .. id end
    local children = call('HMGET', links, unpack(fields))
    for i, id in ipairs(gone) do
        local names = state == 'completed' and children[i]
        if names and awaited[names] == nil then awaited[names] = is_awaited(names) end
        if names and awaited[names] then
            kept[#kept + 1], kept[#kept + 2] = when, id
        else
            local n = #dropped
            free[#free + 1] = id
            dropped[n + 1], dropped[n + 2], dropped[n + 3], dropped[n + 4] = 'k' .. id, 'o' .. id, 's' .. id, 'b' .. id
        end
    end
    in_chunks('ZADD', part(state), kept)
    in_chunks('HDEL', links, dropped)
    if has_heirs and call('EXISTS', links) == 0 then call('HDEL', key, 'h') end
    return free
end

-- Forgets some of what ended long ago, or before so many others. False: there are no more, or some cannot be forgotten yet. These are looked at again,
-- so it is not worth going on.
local function trim_some(state, most, age, at_once)
    local set = part(state)
    local gone = call('ZRANGE', set, '-inf', now - age, 'BYSCORE', 'LIMIT', 0, at_once)
    if #gone == 0 then
        local extra = call('ZCARD', set) - most
        if extra > 0 then gone = call('ZRANGE', set, 0, math.min(extra, at_once) - 1) end
    end
    local count = #gone
    if count > 0 and call('EXISTS', part('links')) == 1 then gone = keep_awaited(state, gone) end
    if 4 * #gone < count then
        call('HSET', key, 'g', string.format('%.0f', now + 200))
        save(key, was)
    elseif state == 'completed' and has[5] then
        call('HDEL', key, 'g')
    end
    if #gone == 0 then return false end
    call('ZREM', set, unpack(gone))
    erase(gone)
    return #gone == count and count == at_once
end
local function trim(state, most, age, at_once)
    local left = math.min(5, math.ceil(1500 / at_once))
    while left > 0 and trim_some(state, most, age, at_once) do left = left - 1 end
end

function forget_old(keep, at_once)
    local completed, age, failed, failed_age = string.match(keep, '^(%d+) (%d+) (%d+) (%d+)$')
    local rests_until = tonumber(has[5] or 0)
    if now >= rests_until then trim('completed', completed, age, rests_until > 0 and 1500 or at_once) end  -- after a rest it makes up for it
    trim('failed', failed, failed_age, at_once)
    trim('cancelled', failed, failed_age, at_once)
end
