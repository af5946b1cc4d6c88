--[[ election_renew: prolong a leadership that is still one's own. It keeps its term, and what is lost stays lost: others get it now.
  KEYS[1]  election     hash
  KEYS[2]  changes      stream
  ARGV[1]  hold         id of the hold
  ARGV[2]  ttl_ms       as in lock_renew
  ARGV[3]  rules        as in lock_acquire
  ARGV[4]  deadline_ms  if given: the server's time after which this must not run any more
  Returns  {'renewed', ttl_ms, now_ms} | {'gone', now_ms} | {'late', now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local call, hold, rules, ttl = redis.call, ARGV[1], ARGV[3], tonumber(ARGV[2])
--#include ttl_check
--#include server_time
--#include lock_state
if owner ~= hold or state ~= 'held' then return {'gone', now} end
if ends > now and now > (tonumber(ARGV[4]) or now) then return {'late', now} end
--#include queue
--#include next_in_line
--#include election_state
if ends > now then
    ends, span = now + ttl, ttl
    commit_all()
    return {'renewed', ttl, now}
end
trust()
settle()
if head then pass_on() end
commit_all()
return {'gone', now}
