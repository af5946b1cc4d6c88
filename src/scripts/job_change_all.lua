--[[ job_change_all: cancel or run again the next ones of many jobs of one type. A step does not take longer than some ms; who asks repeats it.
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
  ARGV[4]  action   cancel (those that have not ended) or requeue (those that have; but not those that ended because of their parents: they come back with these)
  ARGV[5]  place    where to look for them: blocked, delayed, ready, ranked, running, completed, failed, cancelled, or tag:<tag>
  ARGV[6]  state    only those in this state, as in job_read; '': in any
  ARGV[7]  cursor   '<until_ms> <how many to pass over> <how many to look at>', as the last call answered; '-<age_ms>': the first call. Only jobs are changed that
                    had ended until then, or had come, if they have not ended; those that come later are left alone, so that this comes to an end
  ARGV[8]  delay    ms from now on
  ARGV[9]  priority
  Returns  {'<sequence> <how many were changed> <cursor>', now_ms} | {'late', now_ms}; when there are none left to look at the last number of the cursor is 0
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local memory, ready, ranked, later, held, items, dedup, recent, _ = KEYS[11], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[10]
local besides = {'f', 'k', 'h'}
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
--#include job_kids
--#include job_erase
--#include job_forget
--#include job_state
--#include job_withdraw
--#include job_again
--#include queue_states
--#include job_sides
--#include job_sides_commit
--#include job_single
--#include job_tags
--#include job_batch
--#include job_nodes
--#include job_links
--#include job_spread
--#include job_change_one
local place = ARGV[5]
--#include job_change_places
local action, wanted, delay, priority = ARGV[4], ARGV[6], whole(ARGV[8], 0, 1e13), tonumber(ARGV[9])
local until_ms, passed, left = string.match(ARGV[7], '^(%d+) (%d+) (%d+)$')
local age = string.match(ARGV[7], '^%-(%d+)$')
if not (delay and priority and (left or age) and (action == 'cancel' or action == 'requeue')) then return refuse('action, cursor, delay: ms, priority: a number') end
if sequence == known then return {record, server_now} end
local size = call(place == 'ready' and 'LLEN' or 'ZCARD', where)
until_ms, passed, left = until_ms and until_ms + 0 or now - age, (passed or 0) + 0, math.min(left or size, size)

-- The server has no clock for scripts, so work is counted: about 5 us each. Looking at a job is one, changing it is more, and so are long payloads.
local work, most_work, work_of_change, bytes_of_work = 0, 240, 3, 8192
local seen, changed, is_full = {}, 0, false
local listed = left > 0 and listed_from(passed, math.min(left, most_work)) or {}
if #listed == 0 then left = 0 end

local function answer() return string.format('%.0f %d %.0f %d %d', sequence, changed, until_ms, passed, left) end

-- Since when it counts for until_ms.
local function comes_from(job)
    return (job.has_ended and call('ZSCORE', part(job.state), job.id) or string.match(job.text, '^%a %d+ (%d+)')) + 0
end

for _, entry in ipairs(listed) do
    local id = string.match(entry, '(%d+%-%d+%a*)[ .]%d') or entry
    local mine = sides[here]
    local is_stale = mine and not seen[id] and (mine.blocked[id] ~= nil or mine.ended[id] ~= nil)  -- by what became of another one in this step
    if left <= 0 or is_full or is_stale or work >= most_work then break end
    local job = not seen[id] and changeable(action, id)
    work = work + 1 + (job and #job.text / bytes_of_work or 0)
    local fits = job and (wanted == '' or job.state == wanted)
    if fits and comes_from(job) > until_ms then
        fits = false
        if job.has_ended and not is_tag then left = 1 end  -- they are in the order in which they ended: all that follow are younger
    end
    if fits and action == 'requeue' and job.node and job.node.state == 'd' then fits = false end
    seen[id] = true
    left = left - 1
    local stays = is_tag or not fits  -- where it was listed
    if fits then
        if changed == 0 then
            if action == 'cancel' then call('ZREM', held, '') end  -- as in job_change
            remember(answer())
            touch()
        end
        changed = changed + 1
        work = work + work_of_change + #job.text / bytes_of_work
        if job.state == 'waiting' then
            job.remove, stays = remover_of(entry, passed, job)
            work = work + (job.remove and math.min(passed, 5000) / 200 or work_of_withdrawal())
        end
        change(action, job, delay, priority)
        if stays == nil then stays = call('LINDEX', where, passed) == entry end
        is_full = job.single  -- another one of its name may have its turn now
    end
    if stays then passed = passed + 1 end
end
local answer = answer()
if changed == 0 then return {answer, server_now} end
remember(answer)
commit_changes(action, KEYS[9], delay)
return {answer, server_now}
