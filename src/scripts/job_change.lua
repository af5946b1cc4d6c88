--[[ job_change: cancel a job, run it again, or put it off.
  KEYS[1]  queue    hash: the queue of its type
  KEYS[2]  ready    list
  KEYS[3]  ranked   sorted set
  KEYS[4]  later    sorted set
  KEYS[5]  held     sorted set
  KEYS[6]  items    hash
  KEYS[7]  dedup    hash
  KEYS[8]  recent   sorted set
  KEYS[9]  waiting  sorted set
  KEYS[10] absent   never there (include/job_rules.lua)
  KEYS[11] record   string: what the last call of this caller did
  ARGV[1]  rules    as in queue_push
  ARGV[2]  sequence  as in queue_push
  ARGV[3]  deadline_ms
  ARGV[4]  action   cancel (if it has not ended), requeue (if it has), move (if it waits)
  ARGV[5]  id
  ARGV[6]  delay    ms from now on
  ARGV[7]  priority
  Returns  {'<sequence> <1 if it was changed, else 0>', now_ms} | {'late', now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local memory, ready, ranked, later, held, items, dedup, recent, _ = KEYS[11], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[10]
local besides = {'f', 'k', 'h'}
--#include checks
--#include queue_rules
--#include queue_state
--#include queue_was
--#include queue_time
--#include queue_once
--#include queue_touch
--#include queue_entry
--#include queue_tell
--#include queue_tell_time
--#include queue_keys
--#include job_rules
--#include job_commit
--#include job_kids
--#include job_erase
--#include job_forget
--#include job_state
--#include job_withdraw
--#include job_again
--#include queue_states
--#include job_sides
--#include job_sides_commit
--#include job_single
--#include job_tags
--#include job_batch
--#include job_nodes
--#include job_links
--#include job_spread
--#include job_change_one
local action, delay, priority = ARGV[4], whole(ARGV[6], 0, 1e13), tonumber(ARGV[7])
if not (delay and priority) then return refuse('delay: ms, priority: a number') end
if sequence == known then return {record, server_now} end
local job = changeable(action, ARGV[5])
if not job then return {ARGV[2] .. ' 0', server_now} end
if action == 'cancel' then call('ZREM', held, '') end  -- a server out of memory lets this pass, and then all that follows: it frees memory
remember(ARGV[2] .. ' 1')
touch()
change(action, job, delay, priority)
commit_changes(action, KEYS[9], delay)
return {ARGV[2] .. ' 1', server_now}
