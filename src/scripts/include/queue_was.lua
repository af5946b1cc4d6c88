-- The state of the queue before this call, in was. Needs queue_state, key, and besides: which other fields are to be read, of f, k, h, o, in the order in which they are named, or
-- nothing; they are has[2], has[3]...
local has = besides and call('HMGET', key, 'v', unpack(besides)) or {}
local was = opened(besides and has[1] or not besides and call('HGET', key, 'v'))
if is_foreign(key, was) then return redis.error_reply('LOCKSTEP_FORMAT this is not in the format "' .. format .. '"') end
