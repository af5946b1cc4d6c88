-- What waiting means to a lock. Needs lock_state, queue and next_in_line.

-- An owner whose time is over is none any more.
local function settle()
    if not owner or ends > now then return end
    if state ~= 'held' then suspect(owner) end
    owner = nil
end

-- Offers a lock that nobody owns, for the claim window of whoever gets it. Nobody does while the walk is not finished.
local function pass_on()
    local chosen, heard = next_in_line()
    if not chosen then return 0 end
    owner, state, span = node(chosen)[1], 'offered', node(chosen)[5]
    ends = now + span
    leave(chosen)
    return heard
end

-- When a waiter should look again, if nobody tells it before.
local function look_again() return owner and ends - now or 0 end

-- commit() for scripts that changed the queue.
local function commit_all()
    put_queue()
    commit(head)
end
