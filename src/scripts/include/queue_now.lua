-- The queue's own time for who only looks. Needs server_time, queue_state and key.
local was = opened(call('HGET', key, 'v'))
now = own_time(was, now)
