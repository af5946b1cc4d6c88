-- What has to go with a job that is forgotten, and whether its result is still wanted. Needs job_commit, job_kids and queue_entry.

-- They have no tags any more.
local function untag(queue, gone)
    local empty = {}
    for i, text in ipairs(call('HMGET', queue .. ':records', unpack(gone))) do
        for tag in string.gmatch(text and string.match(text, '^%a [%d. e+-]*tags=(%S+)') or '', '[^,]+') do
            call('ZREM', queue .. ':tag:' .. tag, gone[i])
            if call('EXISTS', queue .. ':tag:' .. tag) == 0 then empty[#empty + 1] = tag end
        end
    end
    if #empty > 0 then call('ZREM', queue .. ':tags', unpack(empty)) end
end

-- What is kept of them besides their place among those that ended, and links.
function erase(queue, gone)
    local has_more = call('EXISTS', queue .. ':tags', queue .. ':results', queue .. ':trail', queue .. ':progress', queue .. ':checkpoints') > 0
    if has_more and call('EXISTS', queue .. ':tags') == 1 then untag(queue, gone) end
    in_chunks('HDEL', queue .. ':records', gone)
    for _, name in ipairs(has_more and {'results', 'trail', 'progress', 'checkpoints'} or {}) do in_chunks('HDEL', queue .. ':' .. name, gone) end
end

-- Is the result of a job wanted by one of these children: one that has not completed; if the job is_old, one that has not ended.
local function is_wanted_by(base, names, is_old)
    local all = {}
    for type, id in string.gmatch(names, '([^/ ]+)/(%S+)') do all[#all + 1] = {base .. type, id} end
    for i = #all, 1, -1 do
        local queue, id = all[i][1], all[i][2]
        if call('HEXISTS', queue .. ':records', id) == 1 and not call('ZSCORE', queue .. ':completed', id) and
            not (is_old and (call('ZSCORE', queue .. ':failed', id) or call('ZSCORE', queue .. ':cancelled', id))) then
            return true
        end
    end
    return false
end

-- Of many children the last ones are looked at first, some in each call; those that need it no more are no longer its children.
local function is_wanted(queue, id, names, is_old)
    local base, kids = string.match(queue, '^(.*:q:)'), queue .. ':kids:' .. id
    if not has_more_kids(names) then return is_wanted_by(base, names, is_old) end
    if call('EXISTS', string.sub(base, 1, -4) .. ':todo') == 1 then return true end  -- it may name that list
    local size = 0
    while size < 4000 do
        local some = call('LINDEX', kids, -1)
        if not some then return is_wanted_by(base, names, is_old) end
        if is_wanted_by(base, some, is_old) then return true end
        call('RPOP', kids)
        size = size + #some
    end
    return true
end

-- Which of these, that are to be forgotten, can be: places in the list. Their links go.
local function unlink(queue, state, gone, is_old)
    local links, fields, free, fields_gone, wanted = queue .. ':links', {}, {}, {}, {{}, {}}
    for i, id in ipairs(gone) do fields[i] = 'k' .. id end
    local todo = string.match(queue, '^(.*):q:') .. ':todo'
    local children = #gone > 0 and call('HMGET', links, unpack(fields)) or {}
    for i, id in ipairs(gone) do
        local names = state == 'completed' and children[i]
        local known = wanted[is_old[i] and 1 or 2]  -- by the names, which brothers share
        local has_more = children[i] and has_more_kids(children[i])
        if names and (has_more or known[names] == nil) then known[names] = is_wanted(queue, id, names, is_old[i]) end
        if has_more and not names and call('EXISTS', todo) == 1 then names, known[''] = '', true end
        if not (names and known[names]) then
            local n = #fields_gone
            if has_more then call('UNLINK', queue .. ':kids:' .. id) end
            free[#free + 1] = i
            fields_gone[n + 1], fields_gone[n + 2], fields_gone[n + 3], fields_gone[n + 4] = 'k' .. id, 'o' .. id, 's' .. id, 'b' .. id
        end
    end
    in_chunks('HDEL', links, fields_gone)
    if #free > 0 and call('EXISTS', links) == 0 then call('HDEL', queue, 'h') end
    return free
end
