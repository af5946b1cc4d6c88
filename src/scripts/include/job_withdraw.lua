-- The entry of a job that waits is put together again from its record, so that it can be removed without looking for it. Needs job_rules and queue_entry.
--   stats, 'stale'  how many entries in ready are known to be of jobs that are not to be run any more

-- Its priority stands behind the third tab of the first line of its record, if it is not 0; that of a job with parents or a single name in links, too.
local function priority_of(queue, id, text)
    local priority = string.match(text, '^[^\n\t]*\t[^\n\t]*\t[^\n\t]*\t(%-?%d+)\n')
    if priority or not string.find(id, 'f', 1, true) then return priority or '0' end
    local links = call('HMGET', queue .. ':links', 'o' .. id, 's' .. id)
    return links[1] and string.match(links[1], '^%S+ %S+ %S+ %S+ %S+ (%S+)') or links[2] and string.match(links[2], '^%S+ %S+ (%S+)') or '0'
end

-- What its entry can be: its deliveries are those of its last one or one less, and of its failures there are no more than that.
local function possible_entries(queue, id, text)
    local generation, size, window, at = string.match(text, '^%a (%d+) %d+ (%d+) (%d+) [^\n]*\n()')
    local priority, first, name = priority_of(queue, id, text), generation % 2000 * 1000000, string.sub(text, at, at + size - 1)
    local last = tonumber(string.match(call('HGET', queue .. ':running', id) or '', '^%d+') or first)
    local forms, found = {string.format(' %s %s %s', priority, window, size)}, {}
    if name == '' and priority == '0' then table.insert(forms, 1, '') end
    if last < first or last > first + 100 then last = first end
    for _, deliveries in ipairs(last > first and {last, last - 1} or {first}) do
        for failures = deliveries - first, 0, -1 do
            for _, form in ipairs(forms) do found[#found + 1] = string.format('%s %d%s\n%s%s %d', id, deliveries, form, name, generation, failures) end
        end
    end
    if last > first + 1 then found[#found + 1] = string.format('%s %d%s\n%s%s 0', id, first, forms[1], name, generation) end
    return found
end

-- In a list that is long only its first and last entries are looked through: it stays there then, and is counted.
local function withdraw_from_list(ready, id, entries)
    local length = call('LLEN', ready)
    if length <= 1000 then
        for _, entry in ipairs(call('LRANGE', ready, 0, -1)) do
            if string.match(entry, '^(%d+%-%d+%a*) ') == id then return call('LREM', ready, 1, entry) end
        end
        return 0
    end
    for i = 1, math.min(#entries, 8) do
        if call('LPOS', ready, entries[i], 'MAXLEN', 5000) then return call('LREM', ready, 1, entries[i]) end
        if call('LPOS', ready, entries[i], 'RANK', -1, 'MAXLEN', 5000) then return call('LREM', ready, -1, entries[i]) end
    end
    return 0
end

-- In a sorted set that has no such entry, and is short: an entry that 0.1 made, which did not write priorities into records.
local function withdraw_from_short(set, id)
    if call('ZCARD', set) > 1000 then return 0 end
    for _, entry in ipairs(call('ZRANGE', set, 0, -1)) do
        if string.match(entry, '(%d+%-%d+%a*) ') == id then return call('ZREM', set, entry) end
    end
    return 0
end

-- text: its record, before it is changed.
local function withdraw(queue, id, text)
    local entries, ranked, order = possible_entries(queue, id, text), {}, order_of(id) .. ' '
    for i, entry in ipairs(entries) do ranked[i] = order .. entry end
    if call('ZREM', queue .. ':later', unpack(entries)) + call('ZREM', queue .. ':ranked', unpack(ranked)) > 0 then return end
    if withdraw_from_list(queue .. ':ready', id, entries) > 0 then return end
    if withdraw_from_short(queue .. ':ranked', id) + withdraw_from_short(queue .. ':later', id) > 0 then return end
    if call('LLEN', queue .. ':ready') > 1000 then call('HINCRBY', queue .. ':stats', 'stale', 1) end
end
