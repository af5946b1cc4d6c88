--[[ job_add: add jobs that wait for one another, of any types, all or none.
  KEYS[1]  queue     hash: the queue of the type of one of them
  KEYS[2]  types     sorted set: the types that there are
  KEYS[3]  absent    never there (include/job_rules.lua)
  KEYS[4]  record    string: what the last call of this caller did
  ARGV[1]  rules     as in queue_push
  ARGV[2]  sequence  as in queue_push
  ARGV[3]  deadline_ms
  ARGV[4..]          for each job: its type; '<delay_ms or @time_ms> <priority> <policy, as in include/job_sides.lua>'; '' or '<rule><name>', as in
                     include/job_single.lua; its batch, or ''; its parents, each as #<its place in this list, less that of the child> or <type>/<id> of one that exists;
                     '<options of the job>\n<payload>'
  Returns  {'<sequence> <batch>[ <n>=<id of the one for which it was left out>]...', now_ms} | {'late', now_ms}; the ids are <batch>-<n>f
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local memory, _ = KEYS[4], KEYS[3]
local besides
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
--#include job_kids
--#include job_erase
--#include job_forget
--#include job_withdraw
--#include queue_states
--#include job_sides
--#include job_sides_commit
--#include job_single
--#include job_tags
--#include job_batch
--#include job_nodes
--#include job_links
--#include job_spread
if sequence == known then return {record, server_now} end
--#include job_drafts
--#include job_names

-- Nothing was written until here.
for type, one in pairs(sides) do
    if used[type] then
        one.state[2] = batch + 0
        call('ZADD', KEYS[2], 0, type)
    end
    renew(one.q, one.state, one.now)
end
local function put(list, field, value) list[#list + 1], list[#list + 2] = field, value end
local function add(i, job)
    local one, options, at = job.side, string.match(ARGV[6 * i + 3], '^([^\n]*)\n()')
    local records, links = one.records, one.put
    if not records then
        records, links = {}, {}
        one.records, one.put, one.head = records, links, string.format('w 0 %.0f 0 0 ', one.now)
    end
    local n = #records
    records[n + 1] = job.id
    records[n + 2] = one.head .. options .. '\t' .. names_of(job.parents) .. tail_of(job) .. string.sub(ARGV[6 * i + 3], at)
    one.has_tags = one.has_tags or options ~= ''
    if #job.kids > 0 then
        for k, kid in ipairs(job.kids) do job.kids[k] = jobs[kid] end
        local text, more = with_kids('', list_of(job.kids))
        put(links, 'k' .. job.id, text)
        in_chunks('RPUSH', one.q .. ':kids:' .. job.id, more)
    end
    if job.rule then put(links, 's' .. job.id, job.rule .. ' ' .. job.when .. ' ' .. job.priority .. ' ' .. job.name) end
    if job.batch ~= '' then
        put(links, 'b' .. job.id, job.batch)
        count_in(job.batch, 'added', 1)
    end
    one.added[#one.added + 1] = job.id
end
for i, job in ipairs(jobs) do
    if not job.is_left_out then add(i, job) end
end
for _, one in pairs(used) do
    in_chunks('HSET', one.q .. ':records', one.records or {})
    if one.has_tags then tag_all(one.q, one.records) end
    in_chunks('HSET', one.links, one.put or {})
end
for _, older in pairs(olders) do
    for n, kid in ipairs(older.kids) do older.kids[n] = jobs[kid] end
    local before = call('HGET', older.side.links, 'k' .. older.id)
    local text, more = with_kids(before or '', list_of(older.kids))
    if text ~= before then call('HSET', older.side.links, 'k' .. older.id, text) end
    in_chunks('RPUSH', older.side.q .. ':kids:' .. older.id, more)
    -- Whoever ends it does not see by its id that others wait for it.
    if not string.find(older.id, 'f', 1, true) then call('HSET', older.side.q, 'h', 1) end
end
for _, job in ipairs(jobs) do
    if job.is_left_out then
        -- There is one already.
    elseif #job.parents > 0 then
        job.side.nodes[job.id], job.side.blocked[job.id] = job, true
    elseif job.rule then
        begin(job.side, job.id, job.when, job.priority, true)
    else
        enter(job.side, job.id, 0, job.when, job.priority)
    end
end
for _, job in ipairs(jobs) do
    if #job.parents > 0 then weigh(job, job.why) end
end
spread()
commit_batches()
local answer = string.format('%.0f %s%s', sequence, batch, table.concat(twins))
remember(answer)
commit_sides()
return {answer, server_now}
