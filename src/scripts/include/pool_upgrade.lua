-- Makes format 4 of format 2, once: numbers the offers, and counts the holds of each owner. Needs pool_state.
if was[1] == '2' then
    for from = 1, n, 1000 do
        local fields = {}
        for i = from, math.min(n, from + 999) do fields[#fields + 1] = 'o' .. i end
        local ids = call('HMGET', key, unpack(fields))
        for i, id in ipairs(ids) do fields[i] = 'i' .. id end
        for i, text in ipairs(call('HMGET', key, unpack(fields))) do parse(ids[i], text) end
    end
    bound, bound_span = nil, nil
    for i = 1, n do
        local one = slots[i]
        if one.state ~= 'held' then
            last_offer = last_offer + 1
            one.state, one.number = 'offered', last_offer
            set[#set + 1], set[#set + 2] = 'y' .. last_offer, one.id
            touch(one)
        end
        heed(one)
        if string.sub(one.mode, 1, 1) == 'g' then
            local group = groups[one.mode] or {holds = 0, held = 0, fence = 0}
            group.holds, groups[one.mode] = group.holds + 1, group
            if one.state == 'held' then group.held, group.fence = group.held + 1, one.fence end
        end
    end
    del[#del + 1] = 'g'
end
