--[[ job_progress: how far a job is, told by who runs it.
  KEYS[1]  queue  hash: the queue of its type
  KEYS[2]  held   sorted set
  KEYS[3]  absent never there (include/job_rules.lua)
  ARGV[1]  rules  as in queue_push
  ARGV[2]  token  by which it is held
  ARGV[3]  how far
  Returns  1, or 0: it is not held any more, and nothing was changed
]]
local _ = KEYS[3]
--#include checks
--#include queue_rules
--#include job_rules
if not call('ZSCORE', KEYS[2], ARGV[2]) then return 0 end
local id = string.match(ARGV[2], '^(%S+)%.%d+$')
call('HSET', part('progress'), id, ARGV[3])
call('HSET', part('checkpoints'), id, string.match(ARGV[2], '%d+$'))  -- its worker has not died of it so far
redis.pcall(publish, part('events'), 'progress ' .. id)
return 1
