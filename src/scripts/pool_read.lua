--[[ pool_read: look at a pool without touching it.
  KEYS[1]  pool  hash
  Returns  {count (-1: not created), available (negative after a resize), holders, waiting, now_ms}
  Errors   LOCKSTEP_FORMAT
]]
local call, hold, rules = redis.call, '-.0', '0 0 -'
--#include server_time
--#include pool_state
--#include pool_upgrade
--#include queue
--#include next_in_line
--#include pool_holds
--#include pool_settle
settle()
return {count or -1, (count or 0) - used, n, head and tail - head + 1 - holes or 0, now}
