--[[ job_stage_end: add the flow that was sent. From now on it is there: its jobs are entered by the calls that follow (include/job_todo.lua).
  KEYS[1]  queue     hash: the queue of the type of one of them
  KEYS[2]  types     sorted set: the types that there are
  KEYS[3]  absent    never there (include/job_rules.lua)
  KEYS[4]  staged    list
  KEYS[5]  record    string: what the last call of this caller did
  ARGV[1]  rules     as in queue_push
  ARGV[2]  sequence  as in queue_push
  ARGV[3]  deadline_ms
  ARGV[4]  size      how many elements were sent
  ARGV[5..]          the types of its jobs
  Returns  {'<sequence> <batch>', now_ms}, 0 instead of the batch: it was sent for longer than a minute, and is gone | {'late', now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local memory, _ = KEYS[5], KEYS[3]
local besides
--#include checks
--#include queue_rules
--#include queue_state
--#include queue_was
--#include queue_time
--#include queue_once
--#include queue_touch
--#include queue_entry
--#include job_rules
--#include queue_states
--#include job_sides
if sequence == known then return {record, server_now} end
local size, batch = whole(ARGV[4], 1, 1e9), us
if not size then return refuse('size: at least 1') end
if call('LLEN', KEYS[4]) ~= size then return {ARGV[2] .. ' 0', server_now} end
for i = 5, #ARGV do
    local one = side_of(ARGV[i])
    if is_foreign(one.q, one.state) then return redis.error_reply('LOCKSTEP_FORMAT this is not in the format "' .. format .. '"') end
    batch = math.max(batch, one.state[2] + 1)
end
while call('EXISTS', string.format('%s:flow:%.0f', base, batch)) == 1 do batch = batch + 1 end  -- of other types
for type, one in pairs(sides) do
    one.state[2] = batch
    call('ZADD', KEYS[2], 0, type)
    renew(one.q, one.state, one.now)
end
batch = string.format('%.0f', batch)
call('PERSIST', KEYS[4])
call('RENAME', KEYS[4], base .. ':flow:' .. batch)
call('RPUSH', todo, 'f ' .. batch)
remember(ARGV[2] .. ' ' .. batch)
return {ARGV[2] .. ' ' .. batch, server_now}
