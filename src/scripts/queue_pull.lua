--[[ queue_pull: say what became of items, and take others; if there are not enough, be told when there are.
  KEYS[1]   queue     hash; its other keys are in include/queue_places.lua
  KEYS[2]   absent    never there
  KEYS[3]   record    string
  ARGV[1]   rules     as in queue_push; lease_ms 0: what is taken is gone
  ARGV[2]   sequence  as in queue_push
  ARGV[3]   deadline_ms
  ARGV[4]   want      how many to take, at most 1000
  ARGV[5]   name      who is to be told when something comes; '': does not wait
  ARGV[6]   done      how many of the following are done
  ARGV[7..]           include/queue_verdicts.lua
  Returns   {'<sequence> <now_ms> <look again in ms> <waits: 0 or 1>\n<lost>\n<tokens taken>', items taken...}, or only its text if none were | {'late', now_ms}
  Errors    LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local memory, besides, _ = KEYS[3], {'f', 'k'}, KEYS[2]
--#include checks
--#include queue_rules
--#include queue_state
--#include queue_was
--#include queue_time
--#include queue_once
--#include queue_places
--#include queue_places_more
--#include queue_next
--#include queue_touch
--#include queue_entry
--#include queue_tell
--#include queue_tell_time
--#include queue_wait
--#include queue_keys
local dead = key .. ':dead'  -- stream
--#include queue_dead
--#include queue_return
--#include queue_verdicts
--#include queue_take
local want, name = whole(ARGV[4], 0, 1000), ARGV[5]
if not (want and done and done >= 0 and #ARGV >= 6 + done) then return refuse('want: 0 to 1000, done: as many as follow') end
if sequence == known then return taken_before() end
finish()
judge()
touch()
local look, waits = 1e15, 0
if want > 0 then look = settle(held, items) end
local more = put_back()
if want > 0 then take(want) end
--#include queue_pulled
--#include queue_pass_on
return answer[2] and answer or answer[1]
