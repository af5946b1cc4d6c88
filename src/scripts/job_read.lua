--[[ job_read: what is known of jobs of one type.
  KEYS[1]  queue  hash: the queue of the type
  KEYS[2]  held   sorted set
  KEYS[3]  absent never there (include/job_rules.lua)
  ARGV[1..]       their ids
  Returns  {state, since_ms, record, running, result, progress, trail} of each; state is 'unknown', 'waiting', 'blocked', 'running', 'completed', 'failed' or
           'cancelled', and what is not there is ''
]]
local call, key, held, _ = redis.call, KEYS[1], KEYS[2], KEYS[3]
--#include server_time
--#include queue_state
--#include queue_now
--#include job_rules
--#include job_state
local found = {}
for i, id in ipairs(ARGV) do
    local state, since, text = state_of(id)
    found[i] = {state, since or '', text or ''}
    for _, name in ipairs({'running', 'results', 'progress', 'trail'}) do table.insert(found[i], call('HGET', part(name), id) or '') end
end
return found
