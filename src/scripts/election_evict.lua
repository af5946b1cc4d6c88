#!lua flags=allow-oom
--[[ election_evict: end somebody else's leadership. The next in line is offered it, and no term that was given so far is given again.
  KEYS[1]  election  hash
  KEYS[2]  changes   stream
  ARGV[1]  hold      id of the hold
  ARGV[2]  rules     as in lock_acquire
  ARGV[3]  ends      as in lock_evict
  Returns  {'released', now_ms, hold} | {'gone', now_ms} | {'renewed', now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local call, hold, rules = redis.call, ARGV[1], ARGV[2]
--#include server_time
--#include lock_state
--#include queue
--#include next_in_line
--#include election_state
if owner ~= hold or ends <= now then return {'gone', now} end
if ARGV[3] ~= '' and ends ~= tonumber(ARGV[3]) then return {'renewed', now} end
if state == 'held' then note_end('removed') end
owner, last = nil, math.max(last + 1, us)
set = {'f', last}
if head then pass_on() end
--#include tell_second
commit_all()
return {'released', now, hold}
