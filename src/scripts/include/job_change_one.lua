-- A job that is cancelled, run again or put off. Needs job_state, job_withdraw, job_again, job_spread, queue_tell and queue_tell_time; ready, ranked, later, held,
-- items, dedup and recent.
local entered, stopped = 0, {}  -- how many were entered into the queue; tokens of those that run and are to stop

-- What has to be known of it; nothing if it is not in a state for that. Writes nothing.
local function changeable(action, id)
    local state, _, text, token = state_of(id)
    local has_ended = state == 'completed' or state == 'failed' or state == 'cancelled'
    if state == 'unknown' or has_ended ~= (action == 'requeue') or (action == 'move' and state ~= 'waiting') then return end
    places_of(here .. '/' .. id)
    load_nodes()
    local mine = side_of(here)
    local rule, _, _, single = single_of(mine, id)
    local first = single and call('HGET', part('singles'), single)
    if action == 'requeue' and first and first ~= id and rule == 'k' then return end
    local size, at = string.match(text, '^%a %d+ %d+ (%d+) %d+ [^\n]*\n()')
    if not size then return end  -- not a record; another one may be changed in this call already, which must not fail
    local name = string.sub(text, at, at + size - 1)
    if action == 'requeue' and name ~= '' and is_key_taken(name, id) then return end
    return {id = id, name = name, state = state, has_ended = has_ended, text = text, token = token, node = mine.nodes[id], rule = rule, single = single, first = first}
end

-- As changeable() gave it; `remove` takes its entry from the queue, where the caller knows its place. commit_changes() writes what is gathered here.
local function change(action, job, delay, priority)
    local id, state, text, token, mine = job.id, job.state, job.text, job.token, side_of(here)
    if job.node and job.node.state ~= '-' then job.node.state, job.node.changed = '-', true end
    if state == 'blocked' then mine.blocked[id] = false end
    local generation, window = string.match(text, '^%a (%d+) %d+ %d+ (%d+)')
    local name = job.name
    -- Whoever has it, or had it and does not know yet that its lease is over, cannot complete it any more.
    -- Of a single one that runs the lease is left, so that the next one of its name begins when it has stopped.
    local is_stopped = job.single and action == 'cancel' and state == 'running'
    local was_held = false
    if token and not is_stopped then
        call('ZREM', held, token)
        was_held = call('HDEL', items, token) == 1  -- its lease is over: its entry is nowhere else
    end
    if state == 'waiting' and not (was_held and not job.remove) then (job.remove or withdraw)(key, id, text) end
    if action == 'cancel' then
        if name ~= '' and call('HGET', dedup, name) == id then
            call('HDEL', dedup, name)
            limit_keys(dedup, recent)
        end
        call('HSET', part('records'), id, 'x' .. string.sub(text, 2))
        end_job('cancelled', id, '', true)
        if is_stopped then call('HSET', part('links'), 'z' .. id, generation .. ' ' .. job.single) end
        leave(mine, id, 'cancelled')
        if state == 'running' then stopped[#stopped + 1] = token end
        return
    end
    generation = generation + 1
    call('HSET', part('records'), id, record_again(text, generation, priority))
    if job.has_ended then
        call('ZREM', part(state), id)
        call('HDEL', part('results'), id)
        call('HDEL', part('progress'), id)
        come_back(mine, id, state)
        if name ~= '' then take_key(name, id) end
    end
    local entry = string.format('%s %d %d %s %d\n', id, generation % 2000 * 1000000, priority, window, #name) .. name .. generation .. ' 0'
    news[#news + 1] = (job.has_ended and 'requeued ' or 'moved ') .. id
    entered = entered + 1
    if job.single and job.has_ended then
        call('HSET', part('links'), 's' .. id, string.format('%s %.0f %d %s', job.rule, delay, priority, job.single))
        find_turn(mine, id, job.first == id and 'q' or job.rule, string.format('%.0f', delay), priority, job.single)
    elseif delay > 0 then call('ZADD', later, now + delay, entry)
    elseif priority ~= 0 then call('ZADD', ranked, -priority, order_of(id) .. ' ' .. entry)
    else call('RPUSH', ready, entry) end
end

-- What that means for others, and who is told. Its last steps may fail, so it comes last.
local function commit_changes(action, waiting, delay)
    spread()
    commit_batches()
    if delay > 0 and entered > 0 then lower(now + delay) end
    commit_jobs()
    commit_sides()
    for _, token in ipairs(stopped) do redis.pcall(publish, part('control'), token) end
    if entered == 0 then return end
    if delay == 0 then tell(waiting, 'r', math.min(entered, 8)) end
    tell_time(waiting, now + (delay > 0 and delay or 500))  -- who was told may sleep: the next ones look whether it has come
end
