-- For scripts that say how many permits there are. Needs pool_pass_on, and from: the ticket to go on at, or nothing.

-- Takes those out of the queue that want too much, and those that waited only for the pool to be created: so many in one call. Nothing is kept
-- of them, so who is dead is in nobody's way either. Returns the ticket to go on at, if there is one.
local function turn_away(at)
    local final, looked = tail, 0
    local some = head and 2 * holes > tail - head and 1 or 250  -- at a time, unless most numbers are holes
    while at and head and at <= final do
        if looked >= 2000 or #turned_away >= most_turned_away then return at end
        local from, fields = at, {}
        for i = from, math.min(final, from + some - 1) do fields[#fields + 1] = 'q' .. i end
        looked = looked + math.max(#fields, 10)
        for i, text in ipairs(call('HMGET', key, unpack(fields))) do
            if text and count > 0 and not string.find(text, ' ', 1, true) then  -- wants one, and the next number is behind it
                at = from + i
            elseif text then
                local number = from + i - 1
                local id, _, after, want = unpack(node(number))
                if too_much(want) or want == '0' then
                    leave(number)
                    turned_away[#turned_away + 1] = id
                end
                at = after
            elseif from + i - 1 == at then  -- it left meanwhile
                at = at + 1
            end
            if #turned_away >= most_turned_away then break end
        end
    end
end

-- Returns the first it offered to, or '', and the ticket to go on at, or 0.
local function set_count(to, from)
    local fewer = not count or to < count
    count, need = to, math.max(need, now)
    settle()
    local next
    if from then
        next = turn_away(head and math.max(from, head))
    elseif fewer then
        next = turn_away(head)
    end
    local first = pass_on()
    commit_all()
    return first, next or 0
end
