-- Reads and checks what job_add is to add, and gives it ids. Writes nothing. Needs job_sides and sequence.
local count, jobs, used, olders, batch = (#ARGV - 3) / 6, {}, {}, {}, us
if count < 1 or count % 1 ~= 0 then return refuse('six words for each job') end

-- -1: it has not ended, 0: completed, 1: neither; nil: there is none.
local function standing_of(one, id)
    if call('HEXISTS', one.q .. ':records', id) == 0 then return end
    if call('ZSCORE', one.q .. ':completed', id) then return 0 end
    return (call('ZSCORE', one.q .. ':failed', id) or call('ZSCORE', one.q .. ':cancelled', id)) and 1 or -1
end

for i = 1, count do
    local type, place = ARGV[6 * i - 2], ARGV[6 * i - 1]
    local when, priority, policy = string.match(place, '^(@?%d+) (%-?%d+) ([fsg])$')
    if not (when and string.find(type, '^[%w._-]+$') and string.find(ARGV[6 * i + 3], '\n', 1, true)) then
        return refuse('type; <delay_ms or @time_ms> <priority> <policy>; single; batch; parents; <options>\\n<payload>')
    end
    jobs[i] = {side = side_of(type), state = 'b', pending = 0, bad = 0, policy = policy, when = when, priority = priority, parents = {}, kids = {},
               batch = ARGV[6 * i + 1]}
    jobs[i].rule, jobs[i].name = string.match(ARGV[6 * i], '^([kqr])(.+)$')
    jobs[i].single = jobs[i].rule and 's' or '-'
    used[type] = jobs[i].side
end
for i = 1, count do
    for word in string.gmatch(ARGV[6 * i + 2], '%S+') do
        local number, type, id = string.match(word, '^#(%-?%d+)$'), string.match(word, '^([%w._-]+)/(%S+)$')
        local parent, standing = number and jobs[i + number], -1
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
    if is_foreign(one.q, one.state) then return redis.error_reply('LOCKSTEP_FORMAT this is not in the format "' .. format .. '"') end
    batch = math.max(batch, one.state[2] + 1)
end
batch = string.format('%.0f', batch)
for i, job in ipairs(jobs) do job.id = batch .. '-' .. i .. 'f' end

-- A single one that is to be left out if there is one, and on which nothing depends, is not even added.
local ahead, twins = {}, {}
for i, job in ipairs(jobs) do
    local place = job.rule and #job.parents == 0 and job.side.type .. ' ' .. job.name
    local first = place and (ahead[place] or call('HGET', job.side.q .. ':singles', job.name))
    if first and job.rule == 'k' and #job.kids == 0 and job.batch == '' then
        job.is_left_out, twins[#twins + 1] = true, ' ' .. i .. '=' .. first
    elseif place and not (first and job.rule == 'k') then
        ahead[place] = job.id
    end
end
