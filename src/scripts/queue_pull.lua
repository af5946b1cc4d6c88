--[[ queue_pull: say what became of items, and take others; if there are not enough, be told when there are.
  KEYS[1]   queue     hash; its other keys are in include/queue_places.lua
  KEYS[2]   absent    never there
  KEYS[3]   record    string
  ARGV[1]   rules     as in queue_push; lease_ms 0: what is taken is gone
  ARGV[2]   sequence  as in queue_push
  ARGV[3]   deadline_ms
  ARGV[4]   want      how many to take, and how large they may be: include/queue_bytes.lua
  ARGV[5]   name      who is to be told when something comes; '': does not wait
  ARGV[6]   done      how many of the following are done
  ARGV[7..]           include/queue_verdicts.lua
  Returns   {'<sequence> <now_ms> <look again in ms> <waits: 0 or 1; 2: there is more, which did not fit>,<dead letters dropped>\n<lost>\n<tokens taken>', items taken...}, or only its text if none were | {'late', now_ms}
  Errors    LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local memory, besides, _ = KEYS[3], {'f', 'k', 'o'}, KEYS[2]
--#include checks
--#include queue_rules
--#include queue_bytes
--#include read_within
--#include queue_state
--#include queue_was
--#include queue_time
--#include queue_once
local settings = has[4]
--#include queue_settings
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
--#include queue_judge
--#include queue_verdicts
--#include queue_take
local name = ARGV[5]
if not (done and done >= 0 and #ARGV >= 6 + done) then return refuse('done: as many as follow') end
if sequence == known then return taken_before() end
finish()
judge()
touch()
local look, waits, takes = 1e15, 0, want > 0 and not is_paused(was)
if takes then look = settle(held, items) end
local more = put_back()
if takes then take(want, ahead) end
if is_buried or (is_short() and want > 0 and #tokens == 0) then drop_letters() end
--#include queue_pulled
--#include queue_pass_on
return answer[2] and answer or answer[1]
