--[[ job_count: how many jobs of one type are in which state, and how many ever were. Changes nothing.
  KEYS[1]  queue   hash: the queue of the type
  KEYS[2]  ready   list
  KEYS[3]  ranked  sorted set
  KEYS[4]  later   sorted set
  KEYS[5]  held    sorted set
  KEYS[6]  absent  never there (include/job_rules.lua)
  Returns  {waiting, delayed, blocked, running, completed, failed, cancelled, then ever: added, completed, failed, retried, cancelled, dropped_completed,
           dropped_failed (include/job_forget.lua); 1 if the type is paused, else 0}
]]
local call, key, _ = redis.call, KEYS[1], KEYS[6]
--#include server_time
--#include queue_state
--#include queue_now
--#include job_rules
local due = call('ZCOUNT', KEYS[4], '-inf', now)
local found = {call('LLEN', KEYS[2]) + call('ZCARD', KEYS[3]) + due, call('ZCARD', KEYS[4]) - due, call('ZCARD', part('blocked')), call('ZCARD', KEYS[5])}
for _, state in ipairs({'completed', 'failed', 'cancelled'}) do found[#found + 1] = call('ZCARD', part(state)) end
local stale = tonumber(call('HGET', part('stats'), 'stale') or 0)
if stale > 0 then found[1] = found[1] - math.min(stale, call('LLEN', KEYS[2])) end
for _, n in ipairs(call('HMGET', part('stats'), 'added', 'completed', 'failed', 'retried', 'cancelled', 'dropped_completed', 'dropped_failed')) do
    found[#found + 1] = tonumber(n or 0)
end
found[#found + 1] = is_paused(was) and 1 or 0
return found
