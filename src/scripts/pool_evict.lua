#!lua flags=allow-oom
--[[ pool_evict: end somebody else's hold of a pool; of an owner that has several, all. What it had is offered to the next in line, and no
  fence that was given so far is given again.
  KEYS[1]  pool   hash
  ARGV[1]  hold   id of the hold
  ARGV[2]  rules  as in lock_acquire
  ARGV[3]  ends   if not '': only if it still ends at this time, in ms; it was renewed otherwise
  Returns  {'released', now_ms, all holds that were ended...} | {'gone', now_ms} | {'renewed', now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local call, hold, rules = redis.call, ARGV[1], ARGV[2]
--#include server_time
--#include pool_state
--#include pool_upgrade
--#include queue
--#include next_in_line
--#include pool_holds
--#include pool_settle
--#include pool_pass_on
settle()
if not mine then return {'gone', now} end
if ARGV[3] ~= '' and mine.ends ~= tonumber(ARGV[3]) then return {'renewed', now} end
last = math.max(last + 1, us)
local first, ended = mine, {'released', now, hold}
if has_companion(first.mode) then
    for from = 1, n, 1000 do load(from, math.min(n, from + 999)) end
    for i = n, 1, -1 do
        local one = slots[i]
        if one.mode == first.mode and one ~= first then
            ended[#ended + 1] = one.id
            drop(one)
        end
    end
end
drop(first)
pass_on()
--#include tell_second
commit_all()
return ended
