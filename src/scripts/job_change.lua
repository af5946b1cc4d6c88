--[[ job_change: cancel a job, run it again, or put it off.
  KEYS[1]  queue    hash: the queue of its type
  KEYS[2]  ready    list
  KEYS[3]  ranked   sorted set
  KEYS[4]  later    sorted set
  KEYS[5]  held     sorted set
  KEYS[6]  items    hash
  KEYS[7]  dedup    hash
  KEYS[8]  recent   sorted set
  KEYS[9]  waiting  sorted set
  KEYS[10] absent   never there (include/job_rules.lua)
  KEYS[11] record   string: what the last call of this caller did
  ARGV[1]  rules    as in queue_push
  ARGV[2]  sequence  as in queue_push
  ARGV[3]  deadline_ms
  ARGV[4]  what     cancel (if it has not ended), requeue (if it has), move (if it waits)
  ARGV[5]  id
  ARGV[6]  delay    ms from now on
  ARGV[7]  priority
  Returns  {'<sequence> <1 if it was changed, else 0>', now_ms} | {'late', now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local memory, ready, ranked, later, held, items, _ = KEYS[11], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[10]
local besides = {'f', 'k', 'h', 'g'}
--#include checks
--#include queue_rules
--#include queue_state
--#include queue_was
--#include queue_time
--#include queue_once
--#include queue_touch
--#include queue_entry
--#include queue_tell
--#include queue_tell_time
--#include queue_keys
--#include job_rules
--#include job_commit
--#include job_forget
--#include job_state
--#include job_withdraw
--#include queue_states
--#include job_sides
--#include job_single
--#include job_tags
--#include job_batch
--#include job_nodes
--#include job_links
local what, id, delay, priority = ARGV[4], ARGV[5], whole(ARGV[6], 0, 1e13), tonumber(ARGV[7])
if not (delay and priority) then return refuse('delay: ms, priority: a number') end
if sequence == known then return {record, server_now} end
local state, _, text, token = state_of(id)
local has_ended = state == 'completed' or state == 'failed' or state == 'cancelled'
if state == 'unknown' or has_ended ~= (what == 'requeue') or (what == 'move' and state ~= 'waiting') then return {ARGV[2] .. ' 0', server_now} end
places_of(here .. '/' .. id)
load_nodes()
local mine, node = side_of(here), side_of(here).nodes[id]
if node and node.state ~= '-' then node.state, node.changed = '-', true end
if state == 'blocked' then mine.blocked[id] = false end
local rule, _, _, single = single_of(mine, id)
local first = single and call('HGET', part('singles'), single)
if what == 'requeue' and first and first ~= id and rule == 'k' then return {ARGV[2] .. ' 0', server_now} end
local generation, size, window, at = string.match(text, '^%a (%d+) %d+ (%d+) (%d+) [^\n]*\n()')
local name = string.sub(text, at, at + size - 1)
if what == 'cancel' then call('ZREM', held, '') end  -- a server out of memory lets this pass, and then all that follows: it frees memory
remember(ARGV[2] .. ' 1')
touch()
-- Whoever has it, or had it and does not know yet that its lease is over, cannot complete it any more.
-- Of a single one that runs the lease is left, so that the next one of its name begins when it has stopped.
local is_stopped = single and what == 'cancel' and state == 'running'
if token and not is_stopped then
    call('ZREM', held, token)
    call('HDEL', items, token)
end
if state == 'waiting' then withdraw(id) end
if what == 'cancel' then
    if name ~= '' and call('HGET', KEYS[7], name) == id then
        call('HDEL', KEYS[7], name)
        limit_keys(KEYS[7], KEYS[8])
    end
    call('HSET', part('records'), id, 'x' .. string.sub(text, 2))
    end_job('cancelled', id, '', true)
    if is_stopped then call('HSET', part('links'), 'z' .. id, generation .. ' ' .. single) end
    leave(mine, id, 'cancelled')
    spread()
    commit_batches()
    if call('ZCARD', part('cancelled')) % 64 == 0 then trim('cancelled', 10000, 604800000, 100) end
    commit_jobs()
    commit_sides()
    if state == 'running' then redis.pcall(publish, part('control'), token) end
    return {ARGV[2] .. ' 1', server_now}
end
generation = generation + 1
call('HSET', part('records'), id, 'w ' .. generation .. string.match(text, '^%a %d+(.*)$'))
if has_ended then
    call('ZREM', part(state), id)
    call('HDEL', part('results'), id)
    call('HDEL', part('progress'), id)
    come_back(mine, id, state)
end
if has_ended then name, window = '', '0' end  -- another one may have its key now
local entry = string.format('%s %d %d %s %d\n', id, generation % 2000 * 1000000, priority, window, #name) .. name .. generation .. ' 0'
news[1] = (has_ended and 'requeued ' or 'moved ') .. id
if single and has_ended then
    call('HSET', part('links'), 's' .. id, string.format('%s %.0f %d %s', rule, delay, priority, single))
    find_turn(mine, id, first == id and 'q' or rule, string.format('%.0f', delay), priority, single)
elseif delay > 0 then call('ZADD', later, now + delay, entry)
elseif priority ~= 0 then call('ZADD', ranked, -priority, order_of(id) .. ' ' .. entry)
else call('RPUSH', ready, entry) end
spread()
commit_batches()
if delay > 0 then lower(now + delay) end
commit_jobs()
commit_sides()
if delay == 0 then tell(KEYS[9], 'r', 1) end
tell_time(KEYS[9], now + (delay > 0 and delay or 500))  -- who was told may sleep: the next ones look whether it has come
return {ARGV[2] .. ' 1', server_now}
