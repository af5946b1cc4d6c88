-- Who holds permits of a pool. Needs pool_state and queue.

-- The hold in a slot.
local function at(index)
    if slots[index] then return slots[index] end
    local id = call('HGET', key, 'o' .. index)
    return parse(id, call('HGET', key, 'i' .. id))
end

-- Those in some slots, at once.
local function load(from, to)
    local fields = {}
    for i = from, to do
        if not slots[i] then fields[#fields + 1] = 'o' .. i end
    end
    if not fields[1] then return end
    local ids = call('HMGET', key, unpack(fields))
    for i, id in ipairs(ids) do fields[i] = 'i' .. id end
    for i, text in ipairs(call('HMGET', key, unpack(fields))) do parse(ids[i], text) end
end

-- The other holds of the same owner, if it may have any.
local function group_of(mode)
    if string.sub(mode, 1, 1) ~= 'g' then return end
    local known = groups[mode]
    if not known then
        local holds, held, fence = string.match(call('HGET', key, mode) or '', '^(%d+) (%d+) (%d+)$')
        known = {holds = tonumber(holds or 0), held = tonumber(held or 0), fence = tonumber(fence or 0)}
        groups[mode] = known
    end
    return known
end

local function has_companion(mode)
    local group = group_of(mode)
    return group and group.holds > 0
end

local function fits(want)
    local amount, mode = string.match(want or '1', '^(%d+)(.*)$')
    return count and (amount == '0' or amount + 0 <= count - used or has_companion(mode))
end

-- Nobody waits for more than there are: it would be in vain, and in the way of those behind. Who uses permits up waits for new ones.
local function too_much(want)
    local amount, mode = string.match(want or '1', '^(%d+)(.*)$')
    return count and mode ~= 'c' and amount + 0 > count
end

-- A new hold: offered, or asked for by whoever calls and held at once.
local function add(id, want, state, span)
    local amount, mode = string.match(want or '1', '^(%d+)(.*)$')
    local group = group_of(mode)
    if not group or group.holds == 0 then used = used + amount end
    if group then group.holds = group.holds + 1 end
    n = n + 1
    local one = {id = id, index = n, amount = amount + 0, span = span + 0, fence = 0, ends = now + span, state = state, number = 0, mode = mode,
                 moved = true}
    if state == 'offered' then
        last_offer = last_offer + 1
        one.number = last_offer
        set[#set + 1], set[#set + 2] = 'y' .. last_offer, id
    end
    slots[n], by_id[id], dropped[id] = one, one, nil
    if id == hold then mine = one end
    touch(one)
    heed(one)
end

-- An offer that is none any more: it leaves the list.
local function close_offer(one)
    if one.state ~= 'offered' or one.number == 0 then return end
    del[#del + 1] = 'y' .. one.number
    if one.number == first_offer then first_offer = first_offer + 1 end
    one.number = 0
end

-- The last one moves into its slot. What it has comes free, unless its owner has other holds.
local function drop(one)
    local final = at(n)
    slots[n], n = nil, n - 1
    if n == 0 then bound, cursor = nil, nil end
    if final ~= one then
        final.index, final.moved, slots[one.index] = one.index, true, final
        touch(final)
    end
    one.gone, dropped[one.id], by_id[one.id] = true, true, nil
    if one == mine then mine = nil end
    local group = group_of(one.mode)
    if group then
        group.holds = group.holds - 1
        if one.state == 'held' then group.held = group.held - 1 end
    end
    if not group or group.holds == 0 then used = used - one.amount end
    close_offer(one)
end

-- Makes what was offered to this hold its own, with a new fence unless it keeps the one it has. The holds of one owner have one fence.
local function take(ttl, keep)
    local group = group_of(mine.mode)
    if group and mine.state ~= 'held' then
        group.held = group.held + 1
        if group.held == 1 then
            last = math.max(last + 1, us)
            group.fence = last
        end
        mine.fence = group.fence
    elseif not keep then
        last = math.max(last + 1, us)
        mine.fence = last
    end
    if mine.mode == 'c' then count, used, mine.amount = count - mine.amount, used - mine.amount, 0 end
    close_offer(mine)
    mine.state, mine.span, mine.ends = 'held', ttl, now + ttl
    touch(mine)
    heed(mine)
    return {'granted', mine.fence, 1, ttl, now}
end
