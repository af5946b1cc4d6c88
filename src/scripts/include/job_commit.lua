-- Writes what became of jobs. Needs job_rules, queue_entry, now and publish.
local forget, erase  -- job_forget

-- How many of what ended may be forgotten in this call: some for each 64 that ended.
local function quota(total, count)
    local rounds = math.floor(total / 64) - math.floor((total - count) / 64)
    return math.min(100 * rounds, 1000)
end

-- What is told to callers that wait for the end of a job: '<state> <size of its result>\n<result><its last reason>', or only the state if that were long.
-- For a minute it is remembered, too: what they do not hear they ask for.
local function tell_end(queue, id, state, result)
    local reason = string.match(string.match(call('HGET', queue .. ':trail', id) or '', '([^\n]*)\n$') or '', '\t(.*)$') or ''
    local text = #result + #reason <= 16384 and string.format('%s %d\n', state, #result) .. result .. reason or state
    redis.pcall(publish, queue .. ':ended:' .. id, text)
end
local function take_waiters(queue, ids)
    local found = {}
    for i = 1, #ids, 1000 do
        local some = {unpack(ids, i, math.min(i + 999, #ids))}
        for n, is in ipairs(call('HMGET', queue .. ':waiters', unpack(some))) do
            if is then found[#found + 1] = some[n] end
        end
    end
    in_chunks('HDEL', queue .. ':waiters', found)
    if #found > 0 then call('SET', queue .. ':awaited', 1, 'PX', 60000) end
    return found
end

-- Writes what was gathered. keep: as in job_forget; those that completed are forgotten at once if their age is 0 and nobody waits for them. Its last step may
-- fail, so it comes last.
local function commit_jobs(keep)
    local when, awaited, has_waiters, at_once = string.format('%.0f', now), {}, nil, 0
    in_chunks('HSET', part('results'), outcomes)
    for state, ids in pairs(finished) do
        if #ids > 0 then
            in_chunks('HDEL', part('running'), ids)
            add_up(state, #ids)
            if has_waiters == nil then has_waiters = call('EXISTS', part('waiters')) == 1 end
            awaited[state] = has_waiters and take_waiters(key, ids) or {}
            local kept = ids
            if state == 'completed' and keep and string.match(keep, '^%S+ (%S+)') == '0' and call('EXISTS', part('links')) == 0 then
                local is_awaited, free = {}, {}
                kept = awaited[state]
                for _, id in ipairs(kept) do is_awaited[id] = true end
                for _, id in ipairs(ids) do
                    if not is_awaited[id] then free[#free + 1] = id end
                end
                if #free > 0 then erase(key, free) end
            end
            local scored = {}
            for i, id in ipairs(kept) do scored[2 * i - 1], scored[2 * i] = when, id end
            in_chunks('ZADD', part(state), scored)
        end
    end
    for what, n in pairs(tally) do
        local total = call('HINCRBY', part('stats'), what, n)
        if finished[what] then at_once = math.max(at_once, quota(total, n)) end
    end
    if at_once > 0 then forget(key, now, at_once, keep) end
    if has_waiters then
        local results = {}
        for i = 1, #outcomes, 2 do results[outcomes[i]] = outcomes[i + 1] end
        for state, ids in pairs(awaited) do
            for _, id in ipairs(ids) do tell_end(key, id, state, results[id] or '') end
        end
    end
    -- In this order: one that came may have begun, and one that failed, too.
    local function say(what, ids)
        if #ids > 0 then news[#news + 1] = what .. ' ' .. table.concat(ids, ' ') end
    end
    say('added', added)
    for state, ids in pairs(finished) do say(state, ids) end
    say('started', started)
    if #news > 0 then redis.pcall(publish, part('events'), table.concat(news, '\n')) end
end
