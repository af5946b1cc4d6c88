-- In which state a job is, since when, its record, and the token of its last delivery. Needs job_rules, now, held.
local function state_of(id)
    local text = call('HGET', part('records'), id)
    if not text then return 'unknown' end
    for _, state in ipairs({'completed', 'failed', 'cancelled'}) do
        local at = call('ZSCORE', part(state), id)
        if at then return state, at, text end
    end
    if string.find(id, 'f', 1, true) then
        local at = call('ZSCORE', part('blocked'), id)
        if at then return 'blocked', at, text end
    end
    local delivery, since = string.match(call('HGET', part('running'), id) or '', '^(%d+) (%d+)')
    local token = delivery and id .. '.' .. delivery
    local ends = token and call('ZSCORE', held, token)
    if ends and ends + 0 > now then return 'running', since, text, token end
    return 'waiting', string.match(text, '^%a %d+ (%d+)'), text, token
end
