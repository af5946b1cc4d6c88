-- Items that come back or go for good. Needs queue_rules, read_within, queue_entry, queue_keys, queue_dead or job_work, now, and the keys as locals: ready, ranked, later, dedup, recent, dead.
local front, back, by_priority, soonest, forgot = {}, {}, 0, 1e15, false  -- soonest: when the first of what is put off here, or leased, will be ready

-- Nobody needs its key any more, but for the window after it.
local function forget_key(entry)
    local id, _, _, at, _, window, size = open(entry)
    if size == 0 then return end
    local name = string.sub(entry, at, at + size - 1)
    forgot = true
    if window > 0 then
        call('HSET', dedup, name, string.format('%s %.0f', id, now + window))
        call('ZADD', recent, now + window, name)
        if not has[3] then call('HSET', key, 'k', 1) end
    else
        call('HDEL', dedup, name)
    end
end

local function die(entry, deliveries, reason)
    forget_key(entry)
    bury(entry, deliveries, reason)
end

-- It was delivered so often, and is ready again: in front of the others, or behind them.
local function ready_again(entry, deliveries, where)
    local id, before, more, at, priority = open(entry)
    if before ~= deliveries then entry = id .. ' ' .. deliveries .. more .. '\n' .. string.sub(entry, at) end
    if priority ~= 0 then
        call('ZADD', ranked, -priority, order_of(id) .. ' ' .. entry)
        by_priority = by_priority + 1
    else
        where[#where + 1] = {order_of(id), entry}
    end
end

local function put_back()
    local function entries_of(list, from, to, step)
        local texts = {}
        for i = from, to, step do texts[#texts + 1] = list[i][2] end
        return texts
    end
    table.sort(front, function(one, other) return one[1] < other[1] end)
    in_chunks('LPUSH', ready, entries_of(front, #front, 1, -1))
    in_chunks('RPUSH', ready, entries_of(back, 1, #back, 1))
    return #front + #back + by_priority
end

-- What lies with somebody whose lease is over comes back, what was put off until now is ready, keys are forgotten in time.
local function settle(held, items)
    if was[5] > now and not has[3] then return was[5] end
    local has_recent = has[3] or (was[5] == 0 and call('EXISTS', recent) == 1)  -- the hash may have gone since
    local first = call('ZRANGE', held, 0, 0, 'WITHSCORES')[2]
    if first and first + 0 <= now then
        local tokens = call('ZRANGE', held, '-inf', now, 'BYSCORE', 'LIMIT', 0, 200)
        local entries = read_within(#tokens, 1, function(from, n) return call('HMGET', items, unpack(tokens, from + 1, from + n)) end)
        for i = #tokens, #entries + 1, -1 do tokens[i] = nil end  -- the others come next time
        for i, token in ipairs(tokens) do
            local deliveries = tonumber(string.match(token, '%d+$'))
            local crashes = entries[i] and is_exhausted(entries[i], deliveries)
            if crashes then
                die(entries[i], deliveries, 'its lease ended ' .. crashes .. ' times')
            elseif entries[i] then
                ready_again(entries[i], deliveries, front)
            end
        end
        call('ZREM', held, unpack(tokens))
        call('HDEL', items, unpack(tokens))
        first = call('ZRANGE', held, 0, 0, 'WITHSCORES')[2]
    end
    local due = call('ZRANGE', later, 0, 0, 'WITHSCORES')[2]
    if due and due + 0 <= now then
        local entries = read_within(200, 1, function(from, n) return call('ZRANGE', later, '-inf', now, 'BYSCORE', 'LIMIT', from, n) end)
        for _, entry in ipairs(entries) do
            local _, deliveries = open(entry)
            ready_again(entry, deliveries, back)
        end
        call('ZREM', later, unpack(entries))
        due = call('ZRANGE', later, 0, 0, 'WITHSCORES')[2]
    end
    if has_recent then
        local names = call('ZRANGE', recent, '-inf', now, 'BYSCORE', 'LIMIT', 0, 200)
        if #names > 0 then
            call('HDEL', dedup, unpack(names))
            call('ZREM', recent, unpack(names))
        end
        if call('EXISTS', recent) == 0 then call('HDEL', key, 'k') else call('HSET', key, 'k', 1) end
    end
    was[5] = math.min(tonumber(first or 1e15), tonumber(due or 1e15))
    save(key, was)
    return was[5]
end
