#!lua flags=allow-oom
--[[ lock_renew: prolong a lease that is still one's own. It keeps its fence, and what is lost stays lost: others get it now.
  KEYS[1]  lock    hash
  ARGV[1]  hold    id of the hold
  ARGV[2]  ttl_ms  the lease's length from now on, an integer from 1 to 10^12
  ARGV[3]  rules   as in lock_acquire
  ARGV[4]  number       of this command among those that set this hold's end, from 1 on: the same again changes nothing, a smaller one comes too late
  ARGV[5]  deadline_ms  the server's time after which this must not run any more
  Returns  {'renewed', left_ms, now_ms} | {'older', left_ms, now_ms} | {'gone', now_ms} | {'late', now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local call, hold, rules, ttl = redis.call, ARGV[1], ARGV[3], tonumber(ARGV[2])
local asked, deadline = tonumber(ARGV[4]), tonumber(ARGV[5])
--#include ttl_check
--#include number_check
--#include server_time
--#include lock_state
if owner ~= hold or state ~= 'held' then return {'gone', now} end
if ends > now then
    if now > deadline then return {'late', now} end
    if asked < number then return {'older', ends - now, now} end
    if asked > number then
        ends, span, number = now + ttl, ttl, asked
        commit()
    end
    return {'renewed', ends - now, now}
end
-- Lost, and written down: or a clock that is set back later would bring it back.
--#include queue
--#include next_in_line
--#include lock_pass_on
trust()
settle()
if head then pass_on() end
commit_all()
return {'gone', now}
