-- Enters jobs of a flow that was sent in parts: children before their parents, so that none can be run before those that wait for it are there. Needs job_sides,
-- job_tags and job_kids.
--   flow:<batch>  list, of all types, with one of these in each element, where #<n> stands for the id <batch>-<n>f:
--     'J <n> <type> <when> <priority> <policy> <number of parents> <parents, each as <type>/#<n>>\n<options of the job>\n<payload>'
--     'K <type> <n> <children, as the parents>'  of a job that comes behind it, some
local function enter_staged(batch, element)
    local head, at = string.match(element, '^([^\n]*)\n?()')
    local function with_ids(names) return (string.gsub(names, '#(%d+)', batch .. '-%1f')) end
    if string.byte(head) == 75 then
        local type, n, kids = string.match(head, '^K (%S+) (%d+) (.*)$')
        local one, id, names = side_of(type), batch .. '-' .. n .. 'f', {}
        for name in string.gmatch(with_ids(kids), '%S+') do names[#names + 1] = name end
        local before = call('HGET', one.links, 'k' .. id) or ''
        local text, more = with_kids(before, names)
        if text ~= before then call('HSET', one.links, 'k' .. id, text) end
        in_chunks('RPUSH', one.q .. ':kids:' .. id, more)
        return
    end
    local n, type, when, priority, policy, pending, parents = string.match(head, '^J (%d+) (%S+) (%S+) (%S+) (%S) (%d+) ?(.*)$')
    local one, id, options, text = side_of(type), batch .. '-' .. n .. 'f', string.match(element, '^([^\n]*)\n()', at)
    pending = pending + 0
    local rank = (pending > 0 or priority == '0') and '\n' or '\t\t' .. priority .. '\n'
    local record = string.format('w 0 %.0f 0 0 ', one.now) .. options .. '\t' .. with_ids(parents) .. rank .. string.sub(element, text)
    call('HSET', one.q .. ':records', id, record)
    if options ~= '' then tag_all(one.q, {id, record}) end
    one.added[#one.added + 1] = id
    if pending == 0 then return enter(one, id, 0, when, priority) end
    one.blocked[id] = true
    one.nodes[id] = {side = one, id = id, state = 'b', pending = pending, bad = 0, policy = policy, when = when, priority = priority, single = '-', changed = true}
end

-- So many elements; are there more?
local function enter_some(batch, most)
    local flow, bytes = base .. ':flow:' .. batch, 0
    for _ = 1, most do
        local element = call('LPOP', flow)
        if not element then return false end
        enter_staged(batch, element)
        bytes = bytes + #element
        if bytes > 1000000 then break end
    end
    return call('EXISTS', flow) == 1
end
