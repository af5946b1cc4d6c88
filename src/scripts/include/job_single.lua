-- Jobs of which only one of a name, of a type, waits to be run or runs. Needs job_sides and job_withdraw; job_links defines leave.
--   links, s<id>  '<rule> <when> <priority> <name>'; rule where there is one already: k (left out), q (waits until it has ended), r (takes its place)
--          z<id>  '<generation> <name>': it was told to stop, and is held until its worker says that it has, or its lease ends
--   singles       hash of a type: name -> id of the one that may be run
--   line:<name>   sorted set of a type: ids of those that wait for that one, in order     aside:<id>  many of these whose place that one took: job_todo.lua
local leave

local function single_of(one, id)
    local text = call('HGET', one.links, 's' .. id)
    if text then return string.match(text, '^(%S) (%S+) (%S+) (.*)$') end
end

local function enter_again(one, id, when, priority)
    one.news[#one.news + 1] = 'released ' .. id
    enter(one, id, string.match(call('HGET', one.q .. ':records', id), '^%a (%d+)'), when, priority)
end

-- The one of this name has ended, or one that waits for it.
local function pass_on(one, id, name)
    local singles, line = one.q .. ':singles', one.q .. ':line:' .. name
    if call('HGET', singles, name) ~= id then return end
    local following, when, priority, _
    repeat
        following = call('ZPOPMIN', line)[1]
        if following then _, when, priority = single_of(one, following) end
    until when or not following
    if not following then
        call('HDEL', singles, name)
        return
    end
    call('HSET', singles, name, following)
    one.blocked[following] = false
    enter_again(one, following, when, priority)
end

-- Its worker has stopped, or its lease is over.
local function stopped_at_last(one, id)
    local name = string.match(call('HGET', one.links, 'z' .. id) or '', '^%d+ (.*)$')
    call('HDEL', one.links, 'z' .. id)
    if name then pass_on(one, id, name) end
end

-- The token by which it is held, if it is.
local function token_of(one, id)
    local delivery = string.match(call('HGET', one.q .. ':running', id) or '', '^%d+')
    local token = delivery and id .. '.' .. delivery
    return token and call('ZSCORE', one.q .. ':held', token) and token
end

-- It is cancelled, because this one takes its place.
local function displace(one, id, name, by)
    local text = call('HGET', one.q .. ':records', id)
    one.blocked[id] = false
    if not text then return end
    call('HSET', one.q .. ':records', id, 'x' .. string.sub(text, 2))
    local token = token_of(one, id)
    if token then
        call('HSET', one.links, 'z' .. id, string.match(text, '^%a (%d+)') .. ' ' .. name)
        redis.pcall(publish, one.q .. ':control', token)
    end
    call('HDEL', one.q .. ':running', id)
    close(one, id, 'cancelled', one.type .. '/' .. by .. ' took its place')
    leave(one, id, 'cancelled')
end

-- It may be run as far as its parents are concerned: is it the one of its name? Gives the one that there is, if it is left out.
local function find_turn(one, id, rule, when, priority, name)
    local singles, line = one.q .. ':singles', one.q .. ':line:' .. name
    local first = call('HGET', singles, name)
    if first and rule == 'k' then return first end
    if first and first ~= id and rule == 'r' then
        call('ZREM', line, id)
        local others = call('ZCARD', line)
        if others > 50 then
            call('RENAME', line, one.q .. ':aside:' .. id)
            call('RPUSH', todo, 'l ' .. one.type .. ' ' .. id .. '\n' .. name)
        elseif others > 0 then
            others = call('ZRANGE', line, 0, -1)
            call('DEL', line)
            for _, other in ipairs(others) do displace(one, other, name, id) end
        end
        if call('HEXISTS', one.links, 'z' .. first) == 0 then
            if not token_of(one, first) then
                call('HDEL', singles, name)
                local text = call('HGET', one.q .. ':records', first)
                if one.entered[first] then one.entered[first], one.has_dropped = 'dropped', true elseif text then withdraw(one.q, first, text) end
                displace(one, first, name, id)
                first = nil
            else
                displace(one, first, name, id)
            end
        end
    end
    if first then
        local last = call('ZRANGE', line, -1, -1, 'WITHSCORES')[2]  -- the clock may have been set back since
        call('ZADD', line, string.format('%.0f', math.max(us, (last or 0) + 1)), id)
        one.blocked[id] = true
    else
        call('HSET', singles, name, id)
        one.blocked[id] = false
        enter_again(one, id, when, priority)
    end
end
