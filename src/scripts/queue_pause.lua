--[[ queue_pause: pause a queue, so that nothing is taken from it, or resume it. What is held stays with its holders; what comes waits.
  KEYS[1]  queue    hash
  KEYS[2]  ready    list; of a work-stealing queue its lanes
  KEYS[3]  ranked   sorted set
  KEYS[4]  later    sorted set
  KEYS[5]  held     sorted set
  KEYS[6]  waiting  sorted set: who waits for items
  KEYS[7]  types    sorted set: of jobs the types that there are; else not used
  KEYS[8]  record   string: what the last call of this caller did
  ARGV[1]  rules    as in queue_push
  ARGV[2]  sequence  as in queue_push
  ARGV[3]  deadline_ms
  ARGV[4]  action   pause or resume
  ARGV[5]  type     of jobs: which is shown even if there are no jobs of it; '': these are no jobs
  Returns  {'<sequence> <1 if that was changed, else 0>', now_ms} | {'late', now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local memory, besides = KEYS[8], {'o'}
--#include checks
--#include queue_rules
--#include queue_state
--#include queue_was
--#include queue_time
--#include queue_once
--#include queue_touch
--#include queue_next
--#include queue_tell
--#include queue_tell_time
if ARGV[4] ~= 'pause' and ARGV[4] ~= 'resume' then return refuse('action: pause or resume') end
if sequence == known then return {record, server_now} end
local pauses = ARGV[4] == 'pause'
if pauses == is_paused(was) then return {ARGV[2] .. ' 0', server_now} end
local done = ARGV[2] .. ' 1'
remember(done)
if pauses then
    was[1], was[3] = format, never
    save(key, was)
    call('PERSIST', key)
    if ARGV[5] ~= '' then call('ZADD', KEYS[7], 0, ARGV[5]) end
    return {done, server_now}
end
local when = next_time(KEYS[5], KEYS[4])
was[3], was[5] = 0, when
-- Its limits stay as long as there may be dead letters that they are about (include/queue_settings.lua).
local dead_ms = has[2] and tonumber(string.match(has[2], '(%d+)$') or 1209600000)
if dead_ms and call('EXISTS', key .. ':dead') == 1 then kept = math.max(kept, dead_ms) end
keep_hash(key, was, now, kept)
if when <= now or call('EXISTS', KEYS[2], KEYS[3]) > 0 then
    tell(KEYS[6], 'r', 8)
    when = now + 500  -- who was told may sleep: the next ones look whether it has come
end
if when < 1e15 then tell_time(KEYS[6], when) end
return {done, server_now}
