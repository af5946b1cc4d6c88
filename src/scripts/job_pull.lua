--[[ job_pull: as queue_pull, of jobs of one type: say what became of some, and take others.
  KEYS[1]   queue     hash; its other keys are in include/queue_places.lua
  KEYS[2]   absent    never there
  KEYS[3]   record    string
  ARGV[1]   rules     as in queue_push; lease_ms 0: what is taken is gone
  ARGV[2]   sequence  as in queue_push
  ARGV[3]   deadline_ms
  ARGV[4]   want      how many to take, and how large they may be: include/queue_bytes.lua
  ARGV[5]   names     '<who is to be told when something comes, or nothing>\n<worker>\n<keep, as in include/job_forget.lua>'
  ARGV[6]   done      how many of the following are done
  ARGV[7..]           include/queue_verdicts.lua; what may be 'done', with its result, 'fail' and 'retry <ms>', with the reason, and 'postpone <ms>', too
  Returns   {'<sequence> <now_ms> <look again in ms> <waits: 0 or 1; 2: there is more, which did not fit>,0[ <completed and failed jobs that were dropped: include/job_forget.lua>]\n<lost>\n<tokens taken>', items taken...}, or only its text if none were | {'late', now_ms}
  Errors    LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local memory, besides, _ = KEYS[3], {'f', 'k', 'h'}, KEYS[2]
local name, worker, keep = string.match(ARGV[5], '^([^\n]*)\n([^\n]*)\n([^\n]*)$')
--#include checks
--#include queue_rules
--#include queue_bytes
--#include read_within
--#include queue_state
--#include queue_was
--#include queue_time
--#include queue_once
--#include queue_places
--#include queue_places_more
--#include queue_next
--#include queue_touch
--#include queue_entry
--#include queue_tell
--#include queue_tell_time
--#include queue_wait
--#include queue_keys
--#include job_rules
--#include job_commit
--#include job_kids
--#include job_erase
--#include job_forget
--#include job_work
--#include queue_return
--#include job_judge
--#include queue_verdicts
--#include queue_take
--#include job_take
--#include job_pass
-- What those that ended mean for those that wait for them. In a function: most calls need none of it. Returns as commit_sides.
local function follow(is_taking)
--#include queue_states
--#include job_sides
--#include job_sides_commit
--#include job_withdraw
--#include job_single
--#include job_tags
--#include job_batch
--#include job_nodes
--#include job_links
--#include job_spread
--#include job_stage_enter
--#include job_todo
    leave_all(side_of(here), linked)
    linked = {}
    spread()
    go_on()
    commit_batches()
    return commit_sides(is_taking)
end
if not (name and done and done >= 0 and #ARGV >= 6 + done) then return refuse('names, done: as many as follow') end
if sequence == known then return taken_before() end
has_heirs = has[4] or (was[1] == '' and call('EXISTS', part('links')) == 1)  -- the hash may have gone since
finish()
judge()
touch()
if has_heirs and not has[4] then call('HSET', key, 'h', 1) end
local look, waits, takes = 1e15, 0, want > 0 and not is_paused(was)
if takes then look = settle(held, items) end
local released, due = 0, 1e15
if #linked > 0 or call('EXISTS', string.match(key, '^(.*):q:') .. ':todo') == 1 then released, due = follow(true) end
soonest = math.min(soonest, due)
local more = put_back() + released
if takes then
    take_jobs(want, ahead)
    -- What was taken and is not to be run may have been the one for which others wait: they can be taken now.
    if #linked > 0 then
        local count, at = follow(false)
        soonest = math.min(soonest, at, count > 0 and now or 1e15)
    end
end
if want > 0 and #ARGV == 6 and #tokens == 0 then  -- it only looks
    if forget(key, now, 400, keep) then soonest = math.min(soonest, now + 50) end
    if call('EXISTS', ready) == 0 then call('HDEL', part('stats'), 'stale') end
elseif not record then
    limits_of(key, keep)
end
--#include queue_pulled
commit_jobs(keep)
--#include queue_pass_on
if dropped.completed + dropped.failed > 0 then
    answer[1] = string.gsub(answer[1], '\n', string.format(' %d %d\n', dropped.completed, dropped.failed), 1)
    remember(answer[1])
end
return answer[2] and answer or answer[1]
