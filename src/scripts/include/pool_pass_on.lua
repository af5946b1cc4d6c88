-- Offers permits that are free to as many as they are enough for, in order: one that needs more holds up those behind it. Needs
-- pool_holds and next_in_line. At most 100 in one call, and whoever claims goes on; one doubted offer at a time.
-- Returns the first it offered to, or '', and how many heard that.
local function pass_on()
    local first, first_heard, mode = '', 0, ''
    -- Nothing is free, and still the first in line may enter beside its owner's other holds.
    local function may_enter() return mode ~= '' or string.find(node(start and start <= tail and start or head)[4] or '', 'g', 1, true) end
    for _ = 1, 100 do
        if not head or not count or (used >= count and not may_enter()) then break end
        local chosen, heard, state = next_in_line(fits)
        if not chosen then break end
        local id, _, _, want = unpack(node(chosen))
        leave(chosen)
        add(id, want, state, window)
        mode = string.match(want or '', 'g.*') or ''
        if first == '' then first, first_heard = id, heard end
        if state == 'doubted' then break end
    end
    return first, first_heard
end

-- When a waiter should look again, if nobody tells it before: when the first lease can be over.
local function look_again(ttl) return n > 0 and bound - now or ttl end

local function place() return math.min(ticket - head, tail - head - holes) + 1 end

-- commit() for scripts that changed the queue.
local function commit_all()
    put_queue()
    commit()
end
