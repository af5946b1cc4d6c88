#!lua flags=allow-oom
--[[ election_renew: prolong a leadership that is still one's own. It keeps its term, and what is lost stays lost.
  KEYS[1]  election     hash
  KEYS[2]  changes      stream
  ARGV[1]  hold         id of the hold
  ARGV[2]  ttl_ms       as in lock_renew
  ARGV[3]  rules        as in lock_acquire
  ARGV[4]  number       as in lock_renew
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
if now > deadline then return {'late', now} end
if asked < number then return {'older', math.max(ends - now, 0), now} end
--#include queue
--#include next_in_line
--#include election_state
-- Also when its end has come by the server's clock, which may have been set: nobody has taken it since.
if asked > number or ends <= now then ends, span, number = now + ttl, ttl, asked end
commit_all()
return {'renewed', ends - now, now}
