-- What the end of a job, or its return, means for its children, and theirs. Needs job_sides, job_nodes, job_kids, job_single and job_batch. Of very many the
-- rest is left to later calls (job_todo.lua), in the order in which it happened: else a child could begin when a parent that came back has not ended yet.
local nodes_left = math.min(math.max(120, 4 * #linked), 800)  -- so many children are looked at in this call
local agenda, open_for = {}, {}  -- {names of children, what is added to their pending and bad parents, why}; of parents that completed: by those names

-- The children that are not in links.
local function leave_kids(one, id, names, pending, bad, why)
    if not has_more_kids(names) then return end
    call('RPUSH', todo, string.format('k %s/%s 0 %d %d %d ', one.type, id, call('LLEN', one.q .. ':kids:' .. id), pending, bad) .. why)
end

-- It has ended in this state, or was in it and is to be run again. Its children, batch and name as a single one, and whether it was told to stop, are in links.
local function left(one, id, state, names, batch, single, stops)
    local why = ''
    if state ~= 'completed' then why = 'its parent ' .. one.type .. '/' .. id .. (state == 'failed' and ' failed' or ' was cancelled') end
    if names then leave_kids(one, id, names, -1, state == 'completed' and 0 or 1, why) end
    if names and state ~= 'completed' then
        agenda[#agenda + 1] = {names = names, pending = -1, bad = 1, why = why}
    elseif names and open_for[names] then
        open_for[names].pending = open_for[names].pending - 1
    elseif names then
        open_for[names] = {names = names, pending = -1, bad = 0}
        agenda[#agenda + 1] = open_for[names]
    end
    if batch then count_in(batch, state, 1) end
    if single then
        local name = string.match(single, '^%S %S+ %S+ (.*)$')
        call('ZREM', one.q .. ':line:' .. name, id)
        if not stops then pass_on(one, id, name) end
    end
end
function leave(one, id, state) left(one, id, state, unpack(call('HMGET', one.links, 'k' .. id, 'b' .. id, 's' .. id, 'z' .. id))) end

-- Those that left at the same time, ids and states. What links say of them is read together; of single ones only if any wait or run, for others are
-- not concerned.
local function leave_all(one, list)
    local size = call('EXISTS', one.q .. ':singles') == 1 and 4 or 2
    for first = 1, #list, 400 do
        local fields, texts, at = {}, nil, 0
        for i = first, math.min(first + 398, #list), 2 do
            local id = list[i]
            fields[at + 1], fields[at + 2] = 'k' .. id, 'b' .. id
            if size == 4 then fields[at + 3], fields[at + 4] = 's' .. id, 'z' .. id end
            at = at + size
        end
        texts, at = call('HMGET', one.links, unpack(fields)), 0
        for i = first, math.min(first + 398, #list), 2 do
            if list[i + 1] == 'over' then
                stopped_at_last(one, list[i])
            else
                left(one, list[i], list[i + 1], texts[at + 1], texts[at + 2], size == 4 and texts[at + 3], size == 4 and texts[at + 4])
            end
            at = at + size
        end
    end
end
local function come_back(one, id, state)
    local is = call('HMGET', one.links, 'k' .. id, 'b' .. id)
    if is[1] then
        local bad = state ~= 'completed' and -1 or 0
        agenda[#agenda + 1] = {names = is[1], pending = 1, bad = bad}
        leave_kids(one, id, is[1], 1, bad, '')
    end
    if is[2] then count_in(is[2], state, -1) end
end
