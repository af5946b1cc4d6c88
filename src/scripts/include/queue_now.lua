-- The queue's own time for who only looks, as in queue_once. Needs server_time and key.
local own = call('HMGET', key, 's', 'c')
now = math.max(now + (own[1] or 0), own[2] or 0)
