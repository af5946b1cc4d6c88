-- For scripts that say how many permits there are. Needs pool_pass_on.

-- Takes all out of the queue that want too much, and those that waited only for the pool to be created, and returns them. Nothing is kept
-- of them, so who is dead is in nobody's way either.
local function turn_away()
    local away, at, final = {}, head, tail
    local some = head and 2 * holes > tail - head and 1 or 1000  -- at a time, unless most numbers are holes
    while at and at <= final do
        local from, fields = at, {}
        for i = from, math.min(final, from + some - 1) do fields[#fields + 1] = 'q' .. i end
        for i, text in ipairs(call('HMGET', key, unpack(fields))) do
            if text and count > 0 and not string.find(text, ' ', 1, true) then  -- wants one, and the next number is behind it
                at = from + i
            elseif text then
                local number = from + i - 1
                local id, _, after, want = unpack(node(number))
                if too_much(want) or want == '0' then
                    leave(number)
                    away[#away + 1] = id
                end
                at = after
            end
        end
    end
    return away
end

-- Returns the first it offered to, or ''. Those who were turned away are told when that is written: they ask again, and get what they wanted or hear why not.
local function set_count(to)
    local fewer = not count or to < count
    count, need = to, now
    settle()
    local away = fewer and turn_away() or {}
    local first = pass_on()
    commit_all()
    for _, id in ipairs(away) do tell(string.match(id, '^[^.]+'), id) end
    return first
end
