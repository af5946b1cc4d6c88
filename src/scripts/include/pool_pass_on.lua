-- Offers permits that are free to as many as they are enough for, in order: one that needs more holds up those behind it, and one that
-- wants more than there are is turned away. Needs pool_settle. At most 100 in one call, and whoever claims goes on.
-- Returns the first it offered to, or '', and how many heard that.
local turned_away, most_turned_away = {}, 250  -- in one call
local function pass_on()
    local first, first_heard, mode = '', 0, ''
    -- Nothing is free, and still the first in line may enter beside its owner's other holds.
    local function may_enter() return mode ~= '' or string.find(node(head)[4] or '', 'g', 1, true) end
    for _ = 1, 100 do
        while head and #turned_away < most_turned_away and too_much(node(head)[4]) and node(head)[1] ~= hold do
            turned_away[#turned_away + 1] = node(head)[1]
            leave(head)
        end
        if #turned_away >= most_turned_away then more = more or head end
        if not head or more or not count or (used >= count and not may_enter()) then break end
        local chosen, heard = next_in_line(fits)
        if not chosen then break end
        local id, _, _, want, own_window = unpack(node(chosen))
        leave(chosen)
        add(id, want, 'offered', own_window)
        mode = string.match(want or '', 'g.*') or ''
        if first == '' then first, first_heard = id, heard end
    end
    return first, first_heard
end

-- commit() for scripts that changed the queue. Those who were turned away are told when that is written: they ask again, and hear why.
local function commit_all()
    put_queue()
    commit()
    for _, id in ipairs(turned_away) do tell(string.match(id, '^[^.]+'), id) end
end
