--[[ job_change: cancel a job, run it again, or put it off. The same again changes nothing more.
  KEYS[1]  queue    hash: the queue of its type
  KEYS[2]  ready    list
  KEYS[3]  ranked   sorted set
  KEYS[4]  later    sorted set
  KEYS[5]  held     sorted set
  KEYS[6]  items    hash
  KEYS[7]  dedup    hash
  KEYS[8]  waiting  sorted set
  ARGV[1]  rules    as in queue_push
  ARGV[2]  what     cancel (if it has not ended), requeue (if it has), move (if it waits)
  ARGV[3]  id
  ARGV[4]  delay    ms from now on
  ARGV[5]  priority
  Returns  {the state in which it was, 1 if it was changed}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local ready, ranked, later, held, items = KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
--#include checks
--#include queue_rules
--#include server_time
--#include queue_entry
--#include queue_tell
--#include queue_tell_time
--#include job_rules
--#include job_state
--#include job_sides
--#include job_single
--#include job_batch
--#include job_links
local what, id, delay, priority = ARGV[2], ARGV[3], whole(ARGV[4], 0, 1e13), tonumber(ARGV[5])
if not (delay and priority) then return refuse('delay: ms, priority: a number') end
local calm, state, _, text, token = tonumber(was[7]), state_of(id)
local has_ended = state == 'completed' or state == 'failed' or state == 'cancelled'
if state == 'unknown' or has_ended ~= (what == 'requeue') or (what == 'move' and state ~= 'waiting') then return {state, 0} end
local mine, node = side_of(here), nodes_of(here .. '/' .. id)[1]
if node and node.state ~= '-' then node.state, node.changed = '-', true end
if state == 'blocked' then mine.blocked[id] = false end
local rule, _, _, single = single_of(mine, id)
local first = single and call('HGET', part('singles'), single)
if what == 'requeue' and first and first ~= id and rule == 'k' then return {state, 0} end
local generation, size, at = string.match(text, '^%a (%d+) %d+ (%d+) [^\n]*\n()')
-- Whoever has it, or had it and does not know yet that its lease is over, cannot complete it any more.
-- Of a single one that runs the lease is left, so that the next one of its name begins when it has stopped.
local is_stopped = single and what == 'cancel' and state == 'running'
if token and not is_stopped then
    call('ZREM', held, token)
    call('HDEL', items, token)
end
if what == 'cancel' then
    if size ~= '0' then
        local name = string.sub(text, at, at + size - 1)
        if call('HGET', KEYS[7], name) == id then call('HDEL', KEYS[7], name) end
    end
    call('HSET', part('records'), id, 'x' .. string.sub(text, 2))
    end_job('cancelled', id, '')
    if is_stopped then call('HSET', part('links'), 'z' .. id, generation .. ' ' .. single) end
    leave(mine, id, 'cancelled')
    spread()
    commit_batches()
    commit_jobs()
    commit_sides()
    if state == 'running' then redis.pcall(publish, part('control'), id) end
    return {state, 1}
end
generation = generation + 1
call('HSET', part('records'), id, 'w ' .. generation .. string.match(text, '^%a %d+(.*)$'))
if has_ended then
    call('ZREM', part(state), id)
    call('HDEL', part('results'), id)
    come_back(mine, id, state)
end
local entry = string.format('%s %d %d 0 0\n%s 0', id, generation * 1000000, priority, generation)
news[1] = (has_ended and 'requeued ' or 'moved ') .. id
if single and has_ended then
    call('HSET', part('links'), 's' .. id, string.format('%s %.0f %d %s', rule, delay, priority, single))
    find_turn(mine, id, first == id and 'q' or rule, string.format('%.0f', delay), priority, single)
elseif delay > 0 then call('ZADD', later, now + delay, entry)
elseif priority ~= 0 then call('ZADD', ranked, -priority, order_of(id) .. ' ' .. entry)
else call('RPUSH', ready, entry) end
spread()
commit_batches()
if delay > 0 and calm and now + delay < calm then call('HSET', key, 'n', string.format('%.0f', now + delay)) end
commit_jobs()
commit_sides()
if delay > 0 then tell_time(KEYS[8], now + delay) else tell(KEYS[8], 'r', 1) end
return {state, 1}
