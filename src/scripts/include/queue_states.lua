-- The states of several queues, each read once, so that all who change one change the same. Needs queue_state and retention.
local states = {}
local function state_at(queue)
    states[queue] = states[queue] or opened(call('HGET', queue, 'v'))
    return states[queue]
end

local function renew(queue, state, now) keep_hash(queue, state, now, math.max(2 * retention, 300000)) end
