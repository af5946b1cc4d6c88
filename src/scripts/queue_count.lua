--[[ queue_count: how many items are where.
  KEYS[1]  ready   list
  KEYS[2]  ranked  sorted set
  KEYS[3]  later   sorted set
  KEYS[4]  held    sorted set
  KEYS[5]  dead    stream
  KEYS[6]  queue   hash
  Returns  {ready (those that are due included), later, held (those whose lease is over included), dead}
]]
local call, key = redis.call, KEYS[6]
--#include server_time
--#include queue_state
--#include queue_now
local due = call('ZCOUNT', KEYS[3], '-inf', now)
return {call('LLEN', KEYS[1]) + call('ZCARD', KEYS[2]) + due, call('ZCARD', KEYS[3]) - due, call('ZCARD', KEYS[4]), call('XLEN', KEYS[5])}
