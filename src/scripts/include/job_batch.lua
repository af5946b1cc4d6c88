-- Jobs whose ends are counted together. Needs job_sides and job_tags.
--   links, b<id>            its batch
--   <jobs>:batch:<batch>    hash: total, policy (o: has failed when one is not completed; a: all are awaited), keep (ms, when it has ended), added, completed,
--                           failed, cancelled: how many; state, when it has ended; job, place, text: type, place and record of a job to be added then
local batches = {}

local function count_in(batch, what, n)
    batches[batch] = batches[batch] or {}
    batches[batch][what] = (batches[batch][what] or 0) + n
end

local function add_plain(type, place, text)
    local one, when, priority = side_of(type), string.match(place, '^(%S+) (%S+)')
    one.state[2] = math.max(one.state[2] + 1, us)
    renew(one.q, one.state, one.now)
    local id, options, at = string.format('%.0f-1', one.state[2]), string.match(text, '^([^\n]*\n)()')
    call('ZADD', base .. ':types', 0, type)
    if priority ~= '0' then options = string.sub(options, 1, -2) .. '\t\t\t' .. priority .. '\n' end
    local record = string.format('w 0 %.0f 0 0 ', one.now) .. options .. string.sub(text, at)
    call('HSET', one.q .. ':records', id, record)
    tag_all(one.q, {id, record})
    one.added[#one.added + 1] = id
    enter(one, id, 0, when, priority)
    return type .. '/' .. id
end

local function judge_batch(at)
    local is = call('HMGET', at, 'total', 'policy', 'keep', 'added', 'completed', 'failed', 'cancelled', 'state', 'job', 'place', 'text')
    if is[8] then return end
    local keep, bad = is[3] or 86400000, (is[6] or 0) + (is[7] or 0)
    local ended = bad + (is[5] or 0)
    local is_full = is[1] and ended >= is[1] + 0
    if is_full or (is[1] and is[2] == 'o' and bad > 0) then
        local state = bad > 0 and 'failed' or 'completed'
        call('HSET', at, 'state', state)
        if is_full and is[9] and (is[2] == 'a' or bad == 0) then call('HSET', at, 'then', add_plain(is[9], is[10], is[11])) end
        call('HDEL', at, 'text')
        call('PEXPIRE', at, keep)
        redis.pcall(publish, at .. ':ended', state)
    elseif (is[4] or 0) - ended <= 0 then
        call('PEXPIRE', at, keep)  -- there is nobody who could end it, unless more come
    else
        call('PERSIST', at)
    end
end

local function commit_batches()
    for batch, counts in pairs(batches) do
        local at = base .. ':batch:' .. batch
        if counts.added or call('EXISTS', at) == 1 then  -- a batch that is forgotten stays so, though a job of it is requeued
            for what, n in pairs(counts) do call('HINCRBY', at, what, n) end
            judge_batch(at)
        end
    end
    batches = {}
end
