--[[ steal_count: how many items are where. Changes nothing.
  KEYS[1]  lanes  sorted set
  KEYS[2]  later  sorted set
  KEYS[3]  held   sorted set
  KEYS[4]  dead   stream
  KEYS[5]  queue  hash
  Returns  {ready, later, held, dead, dead letters that were dropped, 1 if it is paused, else 0, lane, its length, lane, ...}
]]
local call, key, ready = redis.call, KEYS[5], 0
--#include server_time
--#include queue_state
--#include queue_now
local lanes, due = call('ZREVRANGE', KEYS[1], 0, -1, 'WITHSCORES'), call('ZCOUNT', KEYS[2], '-inf', now)
local answer = {0, call('ZCARD', KEYS[2]) - due, call('ZCARD', KEYS[3]), call('XLEN', KEYS[4]), tonumber(call('HGET', key, 'n') or 0), is_paused(was) and 1 or 0}
for i = 1, #lanes, 2 do
    ready = ready + lanes[i + 1]
    answer[#answer + 1], answer[#answer + 2] = lanes[i], tonumber(lanes[i + 1])
end
answer[1] = ready + due
return answer
