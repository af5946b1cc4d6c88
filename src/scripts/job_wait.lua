--[[ job_wait: how a job ended; if it has not, who asks is told on the channel <queue>:ended:<id>.
  KEYS[1]  queue  hash: the queue of its type
  KEYS[2]  held   sorted set
  KEYS[3]  absent never there (include/job_rules.lua)
  ARGV[1]  id
  Returns  {state, result, trail}; as job_read
]]
local call, key, held, _ = redis.call, KEYS[1], KEYS[2], KEYS[3]
--#include server_time
--#include queue_state
--#include queue_now
--#include job_rules
--#include job_state
local state = state_of(ARGV[1])
if state == 'waiting' or state == 'running' or state == 'blocked' then call('HSET', part('waiters'), ARGV[1], 1) end
return {state, call('HGET', part('results'), ARGV[1]) or '', call('HGET', part('trail'), ARGV[1]) or ''}
