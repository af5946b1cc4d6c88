--[[ job_pull: as queue_pull, of jobs of one type: say what became of some, and take others.
  KEYS[1]   queue     hash; its other keys are in include/queue_places.lua
  KEYS[2]   absent    never there
  KEYS[3]   record    string
  ARGV[1]   rules     as in queue_push; lease_ms 0: what is taken is gone
  ARGV[2]   sequence  as in queue_push
  ARGV[3]   deadline_ms
  ARGV[4]   want      '<how many to take>[ <and so many more if there are>]', at most 1000 of each
  ARGV[5]   names     '<who is to be told when something comes, or nothing>\n<worker>\n<keep, as in include/job_rules.lua>'
  ARGV[6]   done      how many of the following are done
  ARGV[7..]           include/queue_verdicts.lua; what may be 'done', with its result, 'fail' and 'retry <ms>', with the reason, too
  Returns   {'<sequence> <now_ms> <look again in ms> <waits: 0 or 1>\n<lost>\n<tokens taken>', items taken...}, or only its text if none were | {'late', now_ms}
  Errors    LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local memory, besides, _ = KEYS[3], {'f', 'k', 'h', 'g'}, KEYS[2]
local name, worker, keep = string.match(ARGV[5], '^([^\n]*)\n([^\n]*)\n([^\n]*)$')
--#include checks
--#include queue_rules
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
--#include job_forget
--#include job_work
--#include queue_return
--#include job_judge
--#include queue_verdicts
--#include queue_take
--#include job_take
-- What those that ended mean for those that wait for them. In a function: most calls need none of it. Returns as commit_sides.
local function follow(is_taking)
--#include queue_states
--#include job_sides
--#include job_single
--#include job_tags
--#include job_batch
--#include job_nodes
--#include job_links
    leave_all(side_of(here), linked)
    linked = {}
    spread()
    commit_batches()
    return commit_sides(is_taking)
end
local want, ahead = string.match(ARGV[4], '^(%d+) ?(%d*)$')
want, ahead = want and whole(want, 0, 1000), ahead == '' and 0 or whole(ahead, 0, 1000)
if not (name and want and ahead and done and done >= 0 and #ARGV >= 6 + done) then return refuse('names, want: 0 to 1000, done: as many as follow') end
if sequence == known then return taken_before() end
has_heirs = has[4] or (was[1] == '' and call('EXISTS', part('links')) == 1)  -- the hash may have gone since
finish()
judge()
touch()
if has_heirs and not has[4] then call('HSET', key, 'h', 1) end
local look, waits = 1e15, 0
if want > 0 then look = settle(held, items) end
local released, due = 0, 1e15
if #linked > 0 then released, due = follow(true) end
soonest = math.min(soonest, due)
local more = put_back() + released
if want > 0 then
    take(want, ahead)
    admit()
    -- What was taken and is not to be run may have been the one for which others wait: they can be taken now.
    if #linked > 0 then
        local count, at = follow(false)
        soonest = math.min(soonest, at, count > 0 and now or 1e15)
    end
end
--#include queue_pulled
commit_jobs(keep)
if waits == 1 and #ARGV == 6 and #tokens == 0 then forget_old(keep, 100) end  -- it only looks
--#include queue_pass_on
return answer[2] and answer or answer[1]
