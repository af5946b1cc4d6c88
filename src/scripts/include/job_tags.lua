-- Words by which jobs can be found. Needs queue_entry and now.
--   tags       sorted set of a type: the tags that there are
--   tag:<tag>  sorted set of a type: ids by the time, ms, when they came
-- records: ids and records, one after the other; a record has 'tags=<tag>,<tag>...' behind the numbers of its head, if it has any.
local function tag_all(queue, records)
    local by_tag, names = {}, {}
    for i = 2, #records, 2 do
        for tag in string.gmatch(string.match(records[i], '^%a [%d. e+-]*tags=(%S+)') or '', '[^,]+') do
            if not by_tag[tag] then by_tag[tag], names[#names + 1], names[#names + 2] = {}, 0, tag end
            table.insert(by_tag[tag], string.format('%.0f', now))
            table.insert(by_tag[tag], records[i - 1])
        end
    end
    for tag, ids in pairs(by_tag) do in_chunks('ZADD', queue .. ':tag:' .. tag, ids) end
    in_chunks('ZADD', queue .. ':tags', names)
end
