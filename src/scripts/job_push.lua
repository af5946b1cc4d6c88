--[[ job_push: as queue_push, jobs of one type: all that the queue has room for.
  KEYS[1]  queue     hash, as in queue_push
  KEYS[2]  absent    never there
  KEYS[3]  types     sorted set: the types that there are, all with 0
  KEYS[4]  record    string: what the last call of this caller did
  ARGV[1]  rules     PUBLISH or SPUBLISH, retention_ms, lease_ms, max_deliveries, max_dead, max_length (0: any), channel, as in include/queue_rules.lua
  ARGV[2]  sequence  grows with each call of the caller; the same again: the same answer, and nothing is done
  ARGV[3]  deadline_ms  the server's time after which this must not run any more
  ARGV[4]  name      who is to be told when there is room; '': nobody
  ARGV[5..]          for each item: '' or '<delay_ms or @time_ms> <priority> <window_ms> <key>', and '<options of the job>\n<payload>'
  Returns  '<sequence> <batch> <accepted> <now_ms>[ <n>=<id of the item that has its key>]...[ -]' (-: nobody was told of them) | {'late', now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local memory, besides, _ = KEYS[4], nil, KEYS[2]
--#include checks
--#include queue_rules
--#include queue_state
--#include queue_was
--#include queue_time
--#include queue_once
--#include queue_touch
--#include queue_entry
--#include job_rules
--#include job_commit
--#include job_tags
--#include job_enter
if sequence == known then return record end
local is_new = was[2] == 0
--#include queue_batch
--#include queue_places
--#include queue_places_more
--#include queue_next
--#include queue_enter
in_chunks('HSET', part('records'), records)
if has_tags then tag_all(key, records) end
if is_new then call('ZADD', KEYS[3], 0, string.match(key, '^.*:(.*)$')) end
local offer = #plain == 1 and #by_rank == 0 and plain[1]
local id, message = offer and string.match(offer, '^%S+'), offer and shown(offer)
--#include queue_offer
if is_taken then
    begun(offer, to)
    plain, told = {}, 1
end
if told == 0 or count > 1 or ARGV[5] ~= '' then  -- otherwise that was all
--#include queue_tell
--#include queue_tell_time
--#include queue_entered
end
add_up('added', #records / 2)
commit_jobs()
return told > 0 and done or done .. ' -'
