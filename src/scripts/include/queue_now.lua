-- The queue's own time for who only looks. Needs server_time, queue_state and key.
now = own_time(opened(call('HGET', key, 'v')), now)
