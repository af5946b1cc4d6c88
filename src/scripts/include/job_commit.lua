-- Writes what became of jobs. Needs job_rules, queue_entry, now and publish.
local forget_old, erase  -- job_forget

-- Writes what was gathered. keep: '<completed> <their age, ms> <failed and cancelled> <their age, ms>'. Its last step may fail, so it comes last.
local function commit_jobs(keep)
    local rounds = 0  -- of those that may be forgotten: one for 64 that ended
    local when, is_awaited = string.format('%.0f', now), false
    in_chunks('HSET', part('results'), outcomes)
    for state, ids in pairs(finished) do
        if #ids > 0 then
            in_chunks('HDEL', part('running'), ids)
            add_up(state, #ids)
            is_awaited = is_awaited or call('EXISTS', part('waiters')) == 1
            if state == 'completed' and keep and string.sub(keep, 1, 2) == '0 ' and not is_awaited and call('EXISTS', part('links')) == 0 then
                erase(ids)
            else
                local scored = {}
                for i, id in ipairs(ids) do scored[2 * i - 1], scored[2 * i] = when, id end
                in_chunks('ZADD', part(state), scored)
            end
        end
    end
    for what, n in pairs(tally) do
        local total = call('HINCRBY', part('stats'), what, n)
        if finished[what] then rounds = rounds + math.floor(total / 64) - math.floor((total - n) / 64) end
    end
    if rounds > 0 and keep then forget_old(keep, math.min(100 * rounds, 1500)) end
    if is_awaited then
        for state, ids in pairs(finished) do
            for _, id in ipairs(ids) do
                if call('HDEL', part('waiters'), id) == 1 then redis.pcall(publish, part('ended:' .. id), state) end
            end
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
