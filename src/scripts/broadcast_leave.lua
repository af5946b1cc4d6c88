#!lua flags=allow-oom
--[[ broadcast_leave: this client has no waiter any more and need not be told.
  KEYS[1]  event  hash
  ARGV[1]  hold   '<client>.<n>' as in broadcast_wait; a client that asked with a larger n since stays
  ARGV[2]  rules  as in broadcast_set
  Returns  {'left', now_ms} | {'gone', now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local format, rules = 'broadcast 1', ARGV[2]
--#include checks
--#include gate_rules
local client, number = string.match(ARGV[1], '^([^ .]+)%.(%d+)$')
if not client then return refuse('hold: <client>.<n>') end
local was = call('HMGET', key, 'v', 'c' .. client)
--#include gate_state
if not was[2] or was[2] + 0 > number + 0 then return {'gone', now} end
call('HDEL', key, 'c' .. client)
return {'left', now}
