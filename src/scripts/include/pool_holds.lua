-- Who holds permits of a pool. Needs pool_state and queue.

-- The hold in a slot.
local function at(index)
    if slots[index] then return slots[index] end
    local id = call('HGET', key, 'o' .. index)
    return parse(id, call('HGET', key, 'i' .. id))
end

-- All of them at once.
local function load_all()
    for from = 1, n, 1000 do
        local fields = {}
        for i = from, math.min(n, from + 999) do
            if not slots[i] then fields[#fields + 1] = 'o' .. i end
        end
        if fields[1] then
            local ids = call('HMGET', key, unpack(fields))
            for i, id in ipairs(ids) do fields[i] = 'i' .. id end
            for i, text in ipairs(call('HMGET', key, unpack(fields))) do parse(ids[i], text) end
        end
    end
end

-- Another hold of the same owner, rather one that has a fence.
local function companion(mode, but)
    if string.sub(mode, 1, 1) ~= 'g' then return end
    load_all()
    local found
    for i = 1, n do
        local one = slots[i]
        if one.mode == mode and one ~= but and (not found or one.state == 'held') then found = one end
    end
    return found
end

local function fits(want)
    local amount, mode = string.match(want or '1', '^(%d+)(.*)$')
    return count and (amount == '0' or amount + 0 <= count - used or companion(mode))
end

-- Nobody waits for more than there are: it would be in vain, and in the way of those behind. Who uses permits up waits for new ones.
local function too_much(want)
    local amount, mode = string.match(want or '1', '^(%d+)(.*)$')
    return count and mode ~= 'c' and amount + 0 > count
end

local function add(id, want, state, span)
    local amount, mode = string.match(want or '1', '^(%d+)(.*)$')
    if not companion(mode) then used = used + amount end
    n = n + 1
    local one = {id = id, index = n, amount = amount + 0, span = span + 0, fence = 0, ends = now + span, state = state, mode = mode,
                 moved = true}
    slots[n], dropped[id] = one, nil
    if id == hold then mine = one end
    touch(one)
    heed(one)
end

-- The last one moves into its slot. What it has comes free, unless its owner has other holds.
local function drop(one)
    local final = at(n)
    slots[n], n = nil, n - 1
    if n == 0 then bound = nil end
    if final ~= one then
        final.index, final.moved, slots[one.index] = one.index, true, final
        touch(final)
    end
    one.gone, dropped[one.id] = true, true
    if one == mine then mine = nil end
    if not companion(one.mode) then used = used - one.amount end
end

-- Makes what was offered to this hold its own, with a new fence unless it keeps the one it has. The holds of one owner have one fence.
local function take(ttl, keep)
    local with = companion(mine.mode, mine)
    if with and with.state == 'held' then
        mine.fence = with.fence
    elseif not keep then
        last = math.max(last + 1, us)
        mine.fence = last
    end
    if mine.mode == 'c' then count, used, mine.amount = count - mine.amount, used - mine.amount, 0 end
    mine.state, mine.span, mine.ends = 'held', ttl, now + ttl
    touch(mine)
    heed(mine)
    return {'granted', mine.fence, 1, ttl, now}
end

-- Forgets holds whose time is over, and offers that are doubted and in the way of somebody who calls. Looks at them only when one
-- of them can be over, or is further away than it is long since the clock was set back.
local function settle(wanted)
    if n == 0 or (bound > now and bound <= now + bound_span and not (wanted and doubts)) then return end
    load_all()
    bound, doubts = nil, false
    for i = n, 1, -1 do
        local one = slots[i]
        if one.ends <= now or (wanted and one.state == 'doubted' and one ~= mine) then
            if one.state ~= 'held' then suspect(one.id) end
            drop(one)
        else
            heed(one)
        end
    end
end
