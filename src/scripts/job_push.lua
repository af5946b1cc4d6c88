--[[ job_push: as queue_push, jobs of one type: all that the queue has room for.
  KEYS[1]  queue     hash
  KEYS[2]  ready     list: items of priority 0
  KEYS[3]  ranked    sorted set: items of other priorities, the largest first
  KEYS[4]  later     sorted set: items that are put off, by the time when they are due
  KEYS[5]  dedup     hash: keys of items, and which items have them
  KEYS[6]  recent    sorted set: keys of items that are done, and until when they count
  KEYS[7]  waiting   sorted set: who waits for items
  KEYS[8]  room      sorted set: who waits for room
  KEYS[9]  held      sorted set, as in queue_pull
  KEYS[10] items     hash, as in queue_pull
  KEYS[11] types     sorted set: the types that there are, all with 0
  KEYS[12] record    string: what the last call of this caller did
  ARGV[1]  rules     'PUBLISH|SPUBLISH <retention_ms> <lease_ms> <max_deliveries> <max_dead> <max_length> <channel>'; 0: any length
  ARGV[2]  sequence  grows with each call of the caller; the same again: the same answer, and nothing is done
  ARGV[3]  deadline_ms  the server's time after which this must not run any more
  ARGV[4]  name      who is to be told when there is room; '': nobody
  ARGV[5..]          for each item: '' or '<delay_ms or @time_ms> <priority> <window_ms> <key>', and '<options of the job>\n<payload>'
  Returns  {'<sequence> <batch> <accepted> <now_ms>[ <n>=<id of the item that has its key>]...', how many were told} | {'late', now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local memory, dedup, recent, held, items = KEYS[12], KEYS[5], KEYS[6], KEYS[9], KEYS[10]
local besides = {}
--#include checks
--#include queue_rules
--#include queue_time
--#include queue_once
--#include queue_touch
--#include queue_entry
--#include job_rules
--#include job_commit
--#include job_tags
--#include job_enter
if sequence == known then return {record, 1} end
--#include queue_batch
--#include queue_enter
in_chunks('HSET', part('records'), records)
if has_tags then tag_all(key, records) end
if not was[2] then call('ZADD', KEYS[11], 0, string.match(key, '^.*:(.*)$')) end
local offer = #plain == 1 and #ranked == 0 and plain[1]
local id, message = offer and string.match(offer, '^%S+'), offer and shown(offer)
--#include queue_offer
if is_taken then
    begun(offer, to)
    plain, told, was[4] = {}, 1, false
end
if told == 0 or count > 1 or ARGV[5] ~= '' then  -- otherwise that was all
--#include queue_tell
--#include queue_tell_time
--#include queue_entered
end
add_up('added', #records / 2)
commit_jobs()
return {done, told}
