--[[ pool_evict: end somebody else's hold of a pool; of an owner that has several, all. What it had is offered to the next in line, and no
  fence that was given so far is given again.
  KEYS[1]  pool   hash
  ARGV[1]  hold   id of the hold
  ARGV[2]  rules  as in lock_acquire
  Returns  {'released', now_ms} | {'gone', now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local call, hold, rules = redis.call, ARGV[1], ARGV[2]
--#include server_time
--#include pool_state
--#include queue
--#include next_in_line
--#include pool_holds
--#include pool_pass_on
settle()
if not mine then return {'gone', now} end
last = math.max(last + 1, us)
local first = mine
local with = companion(first.mode, first)
while with do
    drop(with)
    with = companion(first.mode, first)
end
drop(first)
pass_on()
commit_all()
return {'released', now}
