--[[ job_wait: how a job ended; if it has not, the caller is told on the channel <queue>:ended:<id>.
  KEYS[1]  queue  hash: the queue of its type
  KEYS[2]  held   sorted set
  KEYS[3]  absent never there (include/job_rules.lua)
  ARGV[1]  id
  ARGV[2]  most   bytes that the result may have
  Returns  {state, result, trail, size of the result}; as job_read. The result is '' if it is larger
]]
local call, key, held, _ = redis.call, KEYS[1], KEYS[2], KEYS[3]
--#include server_time
--#include queue_state
--#include queue_now
--#include job_rules
--#include job_state
local state = state_of(ARGV[1])
if state == 'waiting' or state == 'running' or state == 'blocked' then call('HSET', part('waiters'), ARGV[1], 1) end
local result = call('HGET', part('results'), ARGV[1]) or ''
return {state, #result <= ARGV[2] + 0 and result or '', call('HGET', part('trail'), ARGV[1]) or '', #result}
