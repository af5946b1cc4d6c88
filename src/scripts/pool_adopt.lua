#!lua flags=allow-oom
--[[ pool_adopt: take over a lease by its token. The hold gets another id, so a token works once; asked again, the same answer.
  KEYS[1]  pool    hash
  ARGV[1]  token   hold id under which the lease was detached
  ARGV[2]  hold    its new id
  ARGV[3]  ttl_ms  the lease's length from now on, an integer from 1 to 10^12
  ARGV[4]  rules   as in lock_acquire
  ARGV[5]  deadline_ms  if given: the server's time after which this must not run any more
  Returns  {'granted', fence, 1, left_ms, now_ms} | {'gone', now_ms} | {'late', now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local call, hold, rules, ttl = redis.call, ARGV[2], ARGV[4], tonumber(ARGV[3])
--#include ttl_check
--#include server_time
if now > (tonumber(ARGV[5]) or now) then return {'late', now} end
--#include pool_state
--#include pool_upgrade
local text = not mine and call('HGET', key, 'i' .. ARGV[1])
local one = mine or text and parse(ARGV[1], text)
if not one or one.state ~= 'held' or one.ends <= now then return {'gone', now} end
if not mine then  -- otherwise it is asked again, or later than a renewal of the new hold: as it is
    dropped[ARGV[1]] = true
    one.id, one.moved, one.ends, one.span, one.number = hold, true, now + ttl, ttl, 0
    touch(one)
    heed(one)
    commit()
end
return {'granted', one.fence, 1, one.ends - now, now}
