#!lua flags=allow-oom
--[[ pool_renew: prolong a lease that is still one's own. It keeps its fence, and what is lost stays lost: others get it now.
  KEYS[1]  pool    hash
  ARGV[1]  hold    id of the hold
  ARGV[2]  ttl_ms  the lease's length from now on, an integer from 1 to 10^12
  ARGV[3]  rules   as in lock_acquire
  ARGV[4]  number  as in lock_renew
  ARGV[5]  deadline_ms  the server's time after which this must not run any more
  Returns  {'renewed', left_ms, now_ms} | {'older', left_ms, now_ms} | {'gone', now_ms} | {'late', now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local call, hold, rules, ttl = redis.call, ARGV[1], ARGV[3], tonumber(ARGV[2])
local asked, deadline = tonumber(ARGV[4]), tonumber(ARGV[5])
--#include ttl_check
--#include number_check
--#include server_time
--#include pool_state
--#include pool_upgrade
if not mine or mine.state ~= 'held' then return {'gone', now} end
if mine.ends > now then
    if now > deadline then return {'late', now} end
    if asked < mine.number then return {'older', mine.ends - now, now} end
    if asked > mine.number then
        mine.ends, mine.span, mine.number = now + ttl, ttl, asked
        touch(mine)
        heed(mine)
        commit()
    end
    return {'renewed', mine.ends - now, now}
end
-- Lost, and written down: or a clock that is set back later would bring it back.
--#include queue
--#include next_in_line
--#include pool_holds
--#include pool_settle
--#include pool_pass_on
trust()
settle()
pass_on()
commit_all()
return {'gone', now}
