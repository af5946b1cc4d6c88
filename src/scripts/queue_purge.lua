--[[ queue_purge: remove all that wait, those that are put off included. What is held stays with its holders.
  KEYS[1]  queue     hash
  KEYS[2]  ready     list
  KEYS[3]  ranked    sorted set
  KEYS[4]  later     sorted set
  KEYS[5]  items     hash: what is held
  KEYS[6]  dedup     hash
  KEYS[7]  recent    sorted set
  KEYS[8]  room      sorted set: who waits for room
  KEYS[9]  record    string: what the last call of this caller did
  ARGV[1]  rules     as in queue_push
  ARGV[2]  sequence  as in queue_push
  ARGV[3]  deadline_ms
  Returns  {'<sequence> <how many were removed>', now_ms} | {'late', now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local memory = KEYS[9]
local besides = {'f'}
--#include checks
--#include queue_rules
--#include queue_state
--#include queue_was
--#include queue_time
--#include queue_once
--#include queue_touch
--#include queue_entry
--#include queue_keys
--#include queue_tell
if sequence == known then return {record, server_now} end
local removed = call('LLEN', KEYS[2]) + call('ZCARD', KEYS[3]) + call('ZCARD', KEYS[4])
call('UNLINK', KEYS[2], KEYS[3], KEYS[4])
-- Only what is held keeps its key, and what is done for a while.
if call('EXISTS', KEYS[6]) == 1 then
    local kept = {}
    for _, entry in ipairs(call('HVALS', KEYS[5])) do
        local id, _, _, at, _, _, size = open(entry)
        if size > 0 then kept[#kept + 1], kept[#kept + 2] = string.sub(entry, at, at + size - 1), id end
    end
    for _, name in ipairs(call('ZRANGE', KEYS[7], 0, -1)) do
        local done = call('HGET', KEYS[6], name)
        if done then kept[#kept + 1], kept[#kept + 2] = name, done end
    end
    call('UNLINK', KEYS[6])
    in_chunks('HSET', KEYS[6], kept)
    limit_keys(KEYS[6], KEYS[7])
end
local answer = string.format('%.0f %d', sequence, removed)
remember(answer)
if removed > 0 and has[2] then tell(KEYS[8], 'm', 1000) end
return {answer, server_now}
