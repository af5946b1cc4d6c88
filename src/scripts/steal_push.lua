--[[ steal_push: put items into a lane of a work-stealing queue, and tell who waits: the lane's own worker first.
  KEYS[1]  queue     hash; as of a queue, and w<lane>: the name of the lane's worker when it last waited
  KEYS[2]  lane      list
  KEYS[3]  lanes     sorted set: lanes that are not empty, by their length
  KEYS[4]  waiting   sorted set: who waits for items
  KEYS[5]  record    string
  ARGV[1]  rules     as in queue_push
  ARGV[2]  sequence  as in queue_push
  ARGV[3]  deadline_ms
  ARGV[4]  lane      its name
  ARGV[5..]          for each item: '', and its payload
  Returns  as queue_push
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local memory = KEYS[5]
local besides = {'o'}
--#include checks
--#include queue_rules
--#include queue_state
--#include queue_was
--#include queue_time
--#include queue_once
--#include queue_touch
--#include queue_entry
--#include queue_tell
if sequence == known then return record end
local settings = has[2]
--#include queue_settings
--#include queue_batch
local entries, told = {}, 0
for i = 6, #ARGV, 2 do entries[#entries + 1] = batch .. '-' .. (i - 4) / 2 .. ' 0\n' .. ARGV[i] end
touch(true)
in_chunks('RPUSH', KEYS[2], entries)
call('ZADD', KEYS[3], call('LLEN', KEYS[2]), ARGV[4])
local done = ARGV[2] .. ' ' .. batch .. ' ' .. #entries .. ' ' .. server_text
remember(done)
local own = call('HGET', key, 'w' .. ARGV[4])
if own and not is_paused(was) then
    call('HDEL', key, 'w' .. ARGV[4])
    nobody_looks()
    if call('ZREM', KEYS[4], own) == 1 and redis.pcall(publish, channel .. own, 'r') ~= 0 then told = 1 end
end
if #entries > told then told = told + tell(KEYS[4], 'r', math.min(#entries - told, 8)) end
return told > 0 and done or done .. ' -'
