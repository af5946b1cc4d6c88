-- What an election has besides a lock: who leads, priorities, and a stream of changes, KEYS[2]. Needs lock_state, queue, next_in_line.
--   n  '<hold> <since_ms> <who>' of the latest leader       y  somebody who stood in line had a priority
--   j  '<hold> <ms>': the end of this leader had come by the server's clock, and it was asked for a renewal then
--   u  changes that are not in the stream yet, in order, '<what> <term> <ms> <who>' and a newline each: the short ways leave them here,
--      and every other script, the leader's next renewal at the latest, takes them along
local noted = call('HMGET', key, 'n', 'u', 'y', 'j')
local changes, ranked = noted[2] or '', noted[3]

local function note(what, who) changes = changes .. string.format('%s %.0f %.0f %s\n', what, last, now, who) end

-- Whoever leads does not lead any more.
local function note_end(what) note(what, string.match(noted[1] or '', '^%S+ %S+ (.*)$') or '0 ? ?') end

local function elect(ttl, who)
    local answer = take(ttl, 1)
    note('elected', who)
    set[#set + 1] = 'n'
    set[#set + 1] = string.format('%s %.0f %s', hold, now, who)
    return answer
end

-- The server's clock may have been set forward, and its leader be well: one that listens is asked for a renewal, and keeps the seat for a
-- claim window more. Once: a renewal takes the note away.
local asks
local function is_asked()
    if owner == hold or noted[4] and string.match(noted[4], '^%S+') == owner then return false end
    local heard = redis.pcall(publish, channel .. string.match(owner, '^[^.]+'), '+' .. owner)
    if heard == 0 then return false end
    asks, ends = string.format('%s %.0f', owner, now), now + math.min(window, span)
    return true
end

-- Otherwise as for a lock.
local function settle()
    if not owner or ends > now then return end
    if state == 'held' then
        if is_asked() then return end
        note_end('lost')
    else
        suspect(owner)
    end
    owner = nil
end

-- Offers what nobody owns to the one of the highest priority that can be reached, and of those to the first. Otherwise as for a lock.
local function pass_on()
    local order, at = {}, head
    while at and at <= tail and #order < 1000 do
        order[#order + 1], at = at, node(at)[3]
    end
    table.sort(order, function(a, b)
        local first, second = tonumber(node(a)[4] or 0), tonumber(node(b)[4] or 0)
        return first > second or (first == second and a < b)
    end)
    for _, one in ipairs(order) do
        local heard = more and 0 or reach(one)
        if heard ~= 0 then
            owner, state, span = node(one)[1], 'offered', node(one)[5]
            ends = now + span
            leave(one)
            return heard
        end
    end
    more = head
    return 0
end

local function look_again() return owner and ends - now or 0 end

-- The stream first: a server that refuses that has changed nothing.
local function commit_all()
    put_queue()
    for what, term, ms, who in string.gmatch(changes, '(%S+) (%d+) (%d+) ([^\n]*)\n') do
        call('XADD', KEYS[2], 'MAXLEN', '~', '1000', '*', 'what', what, 'term', term, 'ms', ms, 'who', who)
    end
    if noted[2] then del[#del + 1] = 'u' end
    if asks then
        set[#set + 1], set[#set + 2] = 'j', asks
    elseif noted[4] and not (owner and owner ~= hold and string.match(noted[4], '^%S+') == owner) then
        del[#del + 1] = 'j'
    end
    if not head and noted[3] then
        del[#del + 1] = 'y'
    elseif head and ranked and not noted[3] then
        set[#set + 1], set[#set + 2] = 'y', '1'
    end
    commit(head)
    if changes ~= '' or owner == hold then call('PEXPIREAT', KEYS[2], math.max(now, ends or 0) + 2 * retention) end
    if changes ~= '' then redis.pcall(publish, KEYS[2], 'changed') end
end
