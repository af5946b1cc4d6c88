--[[ queue_push: put items into a queue, all that it has room for, and tell those who wait for them.
  KEYS[1]  queue     hash; its other keys are in include/queue_places.lua
  KEYS[2]  absent    never there
  KEYS[3]  record    string: what the last call of this caller did
  ARGV[1]  rules     PUBLISH or SPUBLISH, retention_ms, lease_ms, max_deliveries, max_dead, max_length (0: any), dead_retention_ms, max_dead_bytes, channel, as in include/queue_rules.lua
  ARGV[2]  sequence  grows with each call of the caller; the same again: the same answer, and nothing is done
  ARGV[3]  deadline_ms  the server's time after which this must not run any more
  ARGV[4]  name      who is to be told when there is room; '': nobody
  ARGV[5..]          for each item: '' or '<delay_ms or @time_ms> <priority> <window_ms> <key>', and its payload
  Returns  '<sequence> <batch> <accepted> <now_ms>[ <n>=<id of the item that has its key>]...[ -]' (-: nobody was told of them) | {'late', now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local memory, besides, _ = KEYS[3], {'o'}, KEYS[2]
--#include checks
--#include queue_rules
--#include queue_state
--#include queue_was
--#include queue_time
--#include queue_once
if sequence == known then return record end
local settings = has[2]
--#include queue_settings
--#include queue_batch
--#include queue_places
--#include queue_next
-- Most calls bring one item to somebody who waits: nothing is prepared that these do not need.
local id, is_alone = batch .. '-1', #ARGV == 6 and ARGV[5] == '' and (most_length == 0 or call('ZCARD', key .. ':later') < most_length)
local offer, done = is_alone and id .. ' 0\n' .. ARGV[6], ARGV[2] .. ' ' .. batch .. ' 1 ' .. server_text
local message = offer
--#include queue_offer
if is_taken then return done end
--#include queue_places_more
--#include queue_touch
--#include queue_entry
--#include queue_plain
--#include queue_enter
offer = not is_alone and #plain == 1 and #by_rank == 0 and plain[1]
id, message = offer and string.match(offer, '^%S+'), offer
--#include queue_offer
if is_taken then plain, told = {}, 1 end
--#include queue_tell
--#include queue_tell_time
--#include queue_entered
return told > 0 and done or done .. ' -'
