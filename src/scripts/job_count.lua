--[[ job_count: how many jobs of one type are in which state, and how many ever were.
  KEYS[1]  queue   hash: the queue of the type
  KEYS[2]  ready   list
  KEYS[3]  ranked  sorted set
  KEYS[4]  later   sorted set
  KEYS[5]  held    sorted set
  KEYS[6]  absent  never there (include/job_rules.lua)
  Returns  {waiting, delayed, blocked, running, completed, failed, cancelled, then ever: added, completed, failed, retried, cancelled}
]]
local call, key, _ = redis.call, KEYS[1], KEYS[6]
--#include server_time
--#include queue_state
--#include queue_now
--#include job_rules
local due = call('ZCOUNT', KEYS[4], '-inf', now)
local found = {call('LLEN', KEYS[2]) + call('ZCARD', KEYS[3]) + due, call('ZCARD', KEYS[4]) - due, call('ZCARD', part('blocked')), call('ZCARD', KEYS[5])}
for _, state in ipairs({'completed', 'failed', 'cancelled'}) do found[#found + 1] = call('ZCARD', part(state)) end
for _, n in ipairs(call('HMGET', part('stats'), 'added', 'completed', 'failed', 'retried', 'cancelled')) do
    found[#found + 1] = tonumber(n or 0)
end
return found
