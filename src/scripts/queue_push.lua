--[[ queue_push: put items into a queue, all that it has room for, and tell those who wait for them.
  KEYS[1]  queue     hash
  KEYS[2]  ready     list: items of priority 0
  KEYS[3]  ranked    sorted set: items of other priorities, the largest first
  KEYS[4]  later     sorted set: items that are put off, by the time when they are due
  KEYS[5]  dedup     hash: keys of items, and which items have them; of those that are done also until when they count, behind a space
  KEYS[6]  recent    sorted set: keys of items that are done, and until when they count
  KEYS[7]  waiting   sorted set: who waits for items
  KEYS[8]  room      sorted set: who waits for room
  KEYS[9]  held      sorted set, as in queue_pull
  KEYS[10] items     hash, as in queue_pull
  KEYS[11] record    string: what the last call of this caller did
  ARGV[1]  rules     'PUBLISH|SPUBLISH <retention_ms> <lease_ms> <max_deliveries> <max_dead> <max_length> <channel>'; 0: any length
  ARGV[2]  sequence  grows with each call of the caller; the same again: the same answer, and nothing is done
  ARGV[3]  deadline_ms  the server's time after which this must not run any more
  ARGV[4]  name      who is to be told when there is room; '': nobody
  ARGV[5..]          for each item: '' or '<delay_ms or @time_ms> <priority> <window_ms> <key>', and its payload
  Returns  {'<sequence> <batch> <accepted> <now_ms>[ <n>=<id of the item that has its key>]...', how many were told} | {'late', now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local memory, dedup, recent, held, items = KEYS[11], KEYS[5], KEYS[6], KEYS[9], KEYS[10]
local besides = {}
--#include checks
--#include queue_rules
--#include queue_time
--#include queue_once
if sequence == known then return {record, 1} end
--#include queue_batch
-- Most calls bring one item to somebody who waits: nothing is prepared that these do not need.
local id, is_alone = batch .. '-1', #ARGV == 6 and ARGV[5] == '' and (most_length == 0 or call('ZCARD', KEYS[4]) < most_length)
local offer, done = is_alone and id .. ' 0\n' .. ARGV[6], ARGV[2] .. ' ' .. batch .. ' 1 ' .. server_text
local message = offer
--#include queue_offer
if is_taken then return {done, 1} end
--#include queue_touch
--#include queue_entry
--#include queue_plain
--#include queue_enter
offer = not is_alone and #plain == 1 and #ranked == 0 and plain[1]
id, message = offer and string.match(offer, '^%S+'), offer
--#include queue_offer
if is_taken then plain, told, was[4] = {}, 1, false end
--#include queue_tell
--#include queue_tell_time
--#include queue_entered
return {done, told}
