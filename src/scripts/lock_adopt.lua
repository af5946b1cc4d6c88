#!lua flags=allow-oom
--[[ lock_adopt: take over a lease by its token. The hold gets another id, so a token works once; asked again, the same answer.
  KEYS[1]  lock    hash
  ARGV[1]  token   hold id under which the lease was detached
  ARGV[2]  hold    its new id
  ARGV[3]  ttl_ms  the lease's length from now on, an integer from 1 to 10^12
  ARGV[4]  rules   as in lock_acquire
  ARGV[5]  deadline_ms  if given: the server's time after which this must not run any more
  Returns  {'granted', fence, 1, left_ms, now_ms} (the last fence of this hold, so at least the token's) | {'gone', now_ms} | {'late', now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local call, hold, rules, ttl = redis.call, ARGV[2], ARGV[4], tonumber(ARGV[3])
--#include ttl_check
--#include server_time
if now > (tonumber(ARGV[5]) or now) then return {'late', now} end
--#include lock_state
if (owner ~= ARGV[1] and owner ~= hold) or state ~= 'held' or ends <= now then return {'gone', now} end
if owner ~= hold then  -- asked again, or later than a renewal of the new hold: as it is
    owner, ends, span = hold, now + ttl, ttl
    commit()
end
return {'granted', last, 1, ends - now, now}
