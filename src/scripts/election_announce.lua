--[[ election_announce: write what the short ways have left to the stream of changes, and tell those who observe. What it does not find,
  another script has written already.
  KEYS[1]  election  hash
  KEYS[2]  changes   stream
  ARGV[1]  hold      of whoever asks
  ARGV[2]  rules     as in lock_acquire
  Returns  1 (written) | 0 (there was nothing)
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local call, hold, rules = redis.call, ARGV[1], ARGV[2]
--#include server_time
--#include lock_state
--#include queue
--#include next_in_line
--#include election_state
if changes == '' then return 0 end
commit_all()
return 1
