--[[ job_step: go on with what concerns very many jobs, as workers do with each call (include/job_todo.lua).
  KEYS[1]  queue   hash: the queue of any type
  KEYS[2]  absent  never there (include/job_rules.lua)
  ARGV[1]  rules   as in queue_push
  ARGV[2]  batch   of a flow that was sent in parts
  Returns  1 if that flow is not there as a whole yet, else 0
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local _ = KEYS[2]
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
--#include job_withdraw
--#include queue_states
--#include job_sides
--#include job_sides_commit
--#include job_single
--#include job_tags
--#include job_batch
--#include job_nodes
--#include job_links
--#include job_spread
--#include job_stage_enter
--#include job_todo
call('ZREM', key .. ':held', '')  -- a server out of memory lets this pass, and then all that follows: it was accepted before
go_on()
commit_batches()
commit_sides()
return call('EXISTS', base .. ':flow:' .. ARGV[2])
