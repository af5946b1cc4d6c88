--[[ steal_purge: empty a lane, and what is put off.
  KEYS[1]  queue     hash
  KEYS[2]  lane      list
  KEYS[3]  lanes     sorted set
  KEYS[4]  later     sorted set
  KEYS[5]  record    string
  ARGV[1]  rules     as in queue_push
  ARGV[2]  sequence  as in queue_push
  ARGV[3]  deadline_ms
  ARGV[4]  lane      its name
  Returns  {'<sequence> <how many items were removed>', now_ms} | {'late', now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local memory = KEYS[5]
local besides
--#include checks
--#include queue_rules
--#include queue_state
--#include queue_was
--#include queue_time
--#include queue_once
--#include queue_touch
if sequence == known then return {record, server_now} end
local removed = call('LLEN', KEYS[2]) + call('ZCARD', KEYS[4])
call('UNLINK', KEYS[2], KEYS[4])
call('ZREM', KEYS[3], ARGV[4])
local answer = string.format('%.0f %d', sequence, removed)
remember(answer)
return {answer, server_now}
