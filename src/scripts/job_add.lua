--[[ job_add: add jobs that wait for one another, of any types, all or none.
  KEYS[1]  queue     hash: the queue of the type of one of them
  KEYS[2]  types     sorted set: the types that there are
  KEYS[3]  record    string: what the last call of this caller did
  ARGV[1]  rules     as in queue_push
  ARGV[2]  sequence  as in queue_push
  ARGV[3]  deadline_ms
  ARGV[4..]          for each job: its type; '<delay_ms or @time_ms> <priority> <policy, as in include/job_sides.lua>'; its parents, each as #<number> of
                     one of these or <type>/<id> of one that exists; '<options of the job>\n<payload>'
  Returns  {'<sequence> <batch>', now_ms} | {'late', now_ms}; the ids are <batch>-<number>f
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local memory = KEYS[3]
--#include checks
--#include queue_rules
--#include server_time
--#include queue_once
--#include queue_entry
--#include job_rules
--#include job_sides
--#include job_links
if sequence == known then return {record, server_now} end
local count, jobs, used, olders, batch = (#ARGV - 3) / 4, {}, {}, {}, us
if count < 1 or count % 1 ~= 0 then return refuse('four words for each job') end

-- -1: it has not ended, 0: completed, 1: neither; nil: there is none.
local function standing_of(one, id)
    if call('HEXISTS', one.q .. ':records', id) == 0 then return end
    if call('ZSCORE', one.q .. ':completed', id) then return 0 end
    return (call('ZSCORE', one.q .. ':failed', id) or call('ZSCORE', one.q .. ':cancelled', id)) and 1 or -1
end

for i = 1, count do
    local type, place = ARGV[4 * i], ARGV[4 * i + 1]
    local when, priority, policy = string.match(place, '^(@?%d+) (%-?%d+) ([fsg])$')
    if not (when and string.find(type, '^[%w._-]+$') and string.find(ARGV[4 * i + 3], '\n', 1, true)) then
        return refuse('type; <delay_ms or @time_ms> <priority> <policy>; parents; <options>\\n<payload>')
    end
    jobs[i] = {side = side_of(type), state = 'b', pending = 0, bad = 0, policy = policy, when = when, priority = priority, parents = {}, kids = {}}
    used[type] = jobs[i].side
end
for i = 1, count do
    for word in string.gmatch(ARGV[4 * i + 2], '%S+') do
        local number, type, id = string.match(word, '^#(%d+)$'), string.match(word, '^([%w._-]+)/(%S+)$')
        local parent, standing = number and jobs[number + 0], -1
        if type then
            parent = olders[word] or {side = side_of(type), id = id, kids = {}}
            standing, olders[word] = standing_of(parent.side, id), parent
            if not standing then return refuse('the parent ' .. word .. ' is not known') end
        end
        if not parent then return refuse('the parent ' .. word .. ' is not one of these') end
        if standing < 0 then jobs[i].pending = jobs[i].pending + 1 end
        if standing > 0 then jobs[i].bad, jobs[i].why = jobs[i].bad + 1, 'its parent ' .. word .. ' had failed or been cancelled' end
        table.insert(jobs[i].parents, parent)
        table.insert(parent.kids, i)
    end
end
for _, one in pairs(sides) do
    local old = call('HMGET', one.q, 'v', 'l')
    if old[1] and old[1] ~= format then return redis.error_reply('LOCKSTEP_FORMAT this is not in the format "' .. format .. '"') end
    batch = math.max(batch, (old[2] or 0) + 1)
end
batch = string.format('%.0f', batch)

-- Nothing was written until here.
for type, one in pairs(sides) do
    local kept = math.max(2 * retention, 300000)
    call('HSET', one.q, 'v', format, 'x', string.format('%.0f', now + kept))
    call('PEXPIRE', one.q, kept)
    if used[type] then
        call('HSET', one.q, 'l', batch)
        call('ZADD', KEYS[2], 0, type)
    end
end
local function name_of(job) return job.side.type .. '/' .. job.id end
local function names_of(list)
    local names = {}
    for n, job in ipairs(list) do names[n] = name_of(job) end
    return table.concat(names, ' ')
end
for i, job in ipairs(jobs) do job.id = batch .. '-' .. i .. 'f' end
for i, job in ipairs(jobs) do
    local one, options, at = job.side, string.match(ARGV[4 * i + 3], '^([^\n]*)\n()')
    one.records, one.children = one.records or {}, one.children or {}
    local text = string.format('w 0 %.0f 0 0 ', now) .. options .. '\t' .. names_of(job.parents) .. '\n' .. string.sub(ARGV[4 * i + 3], at)
    one.records[#one.records + 1], one.records[#one.records + 2] = job.id, text
    for n, kid in ipairs(job.kids) do job.kids[n] = jobs[kid] end
    if #job.kids > 0 then one.children[#one.children + 1], one.children[#one.children + 2] = 'k' .. job.id, names_of(job.kids) end
    one.news[#one.news + 1] = 'added ' .. job.id
    add_up_at(one, 'added', 1)
end
for _, one in pairs(used) do
    in_chunks('HSET', one.q .. ':records', one.records)
    in_chunks('HSET', one.links, one.children)
end
for _, older in pairs(olders) do
    for n, kid in ipairs(older.kids) do older.kids[n] = jobs[kid] end
    local before = call('HGET', older.side.links, 'k' .. older.id)
    call('HSET', older.side.links, 'k' .. older.id, (before and before .. ' ' or '') .. names_of(older.kids))
    -- Whoever ends it does not see by its id that others wait for it.
    if not string.find(older.id, 'f', 1, true) then call('HSET', older.side.q, 'h', 1) end
end
for _, job in ipairs(jobs) do
    if #job.parents == 0 then
        enter(job.side, job.id, 0, job.when, job.priority)
    else
        job.side.nodes[job.id], job.side.blocked[job.id] = job, true
    end
end
for _, job in ipairs(jobs) do
    if #job.parents > 0 then weigh(job, job.why) end
end
spread()
local answer = string.format('%.0f %s', sequence, batch)
remember(answer)
commit_sides()
return {answer, server_now}
