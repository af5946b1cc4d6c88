-- What waiting means to a lock. Needs lock_state, queue and next_in_line.

-- An owner whose time is over is none any more, nor is one whose offer is doubted and in the way of somebody who calls.
local function settle(wanted)
    if not owner or (ends > now and not (wanted and state == 'doubted' and owner ~= hold)) then return end
    if state ~= 'held' then suspect(owner) end
    owner = nil
end

-- Offers a lock that nobody owns.
local function pass_on()
    local chosen, heard, how = next_in_line()
    owner, state, ends = node(chosen)[1], how, now + window
    leave(chosen)
    return heard
end

-- commit() for scripts that changed the queue.
local function commit_all()
    put_queue()
    commit()
end
