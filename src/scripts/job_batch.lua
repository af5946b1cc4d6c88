--[[ job_batch: say how many jobs a batch has, and what is to happen when they have ended. The same again changes nothing.
  KEYS[1]  queue   hash: the queue of the type of the job to be added then, or of any type
  KEYS[2]  batch   hash
  KEYS[3]  absent  never there (include/job_rules.lua)
  ARGV[1]  rules   as in queue_push
  ARGV[2]  total   how many jobs
  ARGV[3]  policy  o or a, as in include/job_batch.lua
  ARGV[4]  keep    ms, how long it is remembered when it has ended
  ARGV[5]  type    of the job to be added then; '': none
  ARGV[6]  place   of it, as in job_add
  ARGV[7]  text    '<options of the job>\n<payload>'
  Returns  1
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local at, _ = KEYS[2], KEYS[3]
local besides
--#include checks
--#include queue_rules
--#include queue_state
--#include queue_was
--#include queue_time
local server_now = now
--#include queue_entry
--#include job_rules
--#include job_commit
--#include job_kids
--#include job_erase
--#include job_forget
--#include queue_states
--#include job_sides
--#include job_sides_commit
--#include job_tags
--#include job_batch
local total, keep = whole(ARGV[2], 1, 1e9), whole(ARGV[4], 1, 1e13)
if not (total and keep and string.find(ARGV[3], '^[oa]$') and string.find(ARGV[7], '\n', 1, true)) then return refuse('total, policy, keep, text') end
local before = call('HMGET', at, 'total', 'policy')
if before[1] and (before[1] + 0 ~= total or before[2] ~= ARGV[3]) then
    return refuse('the batch has a total of ' .. before[1] .. ' already, or another policy')
end
if not before[1] then
    call('HSET', at, 'total', total, 'policy', ARGV[3], 'keep', ARGV[4])
    if ARGV[5] ~= '' then call('HSET', at, 'job', ARGV[5], 'place', ARGV[6], 'text', ARGV[7]) end
end
judge_batch(at)
commit_sides()
return 1
