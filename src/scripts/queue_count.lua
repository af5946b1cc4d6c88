--[[ queue_count: how many items are where. Changes nothing.
  KEYS[1]  ready   list
  KEYS[2]  ranked  sorted set
  KEYS[3]  later   sorted set
  KEYS[4]  held    sorted set
  KEYS[5]  dead    stream
  KEYS[6]  queue   hash
  Returns  {ready (those that are due included), later, held (those whose lease is over included), dead, dead letters that were dropped,
            1 if it is paused, else 0}
]]
local call, key = redis.call, KEYS[6]
--#include server_time
--#include queue_state
--#include queue_now
local due = call('ZCOUNT', KEYS[3], '-inf', now)
return {call('LLEN', KEYS[1]) + call('ZCARD', KEYS[2]) + due, call('ZCARD', KEYS[3]) - due, call('ZCARD', KEYS[4]), call('XLEN', KEYS[5]),
        tonumber(call('HGET', key, 'n') or 0), is_paused(was) and 1 or 0}
