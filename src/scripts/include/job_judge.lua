-- What a worker says of its job. Needs job_work and queue_return.
local takes_ms = {later = true, extend = true, unused = false, retry = true, postpone = true, done = false, fail = false}
local function judged(token, entry, deliveries, what, span, why)
    local id = id_of(token)
    if what == 'done' then
        forget_key(entry)
        end_job('completed', id, why)
    elseif what == 'fail' then
        die(entry, deliveries, why)
    elseif what == 'postpone' then
        if is_stopping(id) then return true end
        set_checkpoint(entry, deliveries)
        news[#news + 1] = 'postponed ' .. id
        if span == '0' then
            ready_again(entry, deliveries - 1, front)
        else
            local _, _, more, at = open(entry)
            call('ZADD', later, now + span, id .. ' ' .. deliveries - 1 .. more .. '\n' .. string.sub(entry, at))
        end
    elseif what == 'retry' then
        if is_stopping(id) then return true end
        set_checkpoint(entry, deliveries)
        local _, _, more, at, _, _, size = open(entry)
        local generation, failures = attempt_of(entry)
        local again = id .. ' ' .. deliveries .. more .. '\n' .. string.sub(entry, at, at + size - 1) .. generation .. ' ' .. failures + 1
        tell_trail(id, deliveries, why)
        news[#news + 1] = 'retrying ' .. id
        add_up('retried', 1)
        if span == '0' then ready_again(again, deliveries, back) else call('ZADD', later, now + span, again) end
    else
        return false
    end
    return true
end

-- Its lease was prolonged; if it was told to stop, it may not have heard it.
local function extended(token)
    local id = id_of(token)
    if string.find(token, 'f.', 1, true) and call('HEXISTS', part('links'), 'z' .. id) == 1 then redis.pcall(publish, part('control'), token) end
    if string.sub(token, -2) ~= '.1' then return end
    -- One that was sent to who waited says here for the first time who it is: until now it was known by the name under which it waited.
    local since = string.match(call('HGET', part('running'), id) or '', '^1 (%d+) %+')
    if since then call('HSET', part('running'), id, '1 ' .. since .. ' ' .. worker) end
end
