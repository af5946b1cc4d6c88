--[[ lock_renew: prolong a lease that is still one's own. It keeps its fence, and what is lost stays lost: others get it now.
  KEYS[1]  lock    hash
  ARGV[1]  hold    id of the hold
  ARGV[2]  ttl_ms  the lease's length from now on, an integer from 1 to 10^12
  ARGV[3]  rules   as in lock_acquire
  ARGV[4]  deadline_ms  if given: the server's time after which this must not run any more, or it could undo a later renewal
  Returns  {'renewed', ttl_ms, now_ms} | {'gone', now_ms} | {'late', now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local call, hold, rules, ttl = redis.call, ARGV[1], ARGV[3], tonumber(ARGV[2])
-- For scripts that give a lease another length. Needs ttl.
if not (ttl and ttl >= 1 and ttl <= 1e12 and ttl % 1 == 0) then
    return redis.error_reply('LOCKSTEP_ARGUMENT ttl_ms must be 1 to 10^12')
end
-- The server's time in µs and in whole ms. Needs call.
local time = call('TIME')
local us = time[1] * 1000000 + time[2]
local now = (us - us % 1000) / 1000
-- One lock is one hash: read here in full, changed in Lua, written back by commit(). Needs call, hold, rules, us and now (TIME).
--   v  format                 f  last fence given           x  latest end of a lease that the key's expiry allows for
--   o  the owner's hold, its lease ends t ms after f; or '*', and then the owner is p, its state s, its end e, its length d
--   h  first ticket, l last ticket, z holes between them; q<ticket> its hold, w<hold> its ticket (all absent when nobody waits)
--   m  suspects: clients that let an offer lapse and did not call since; g  all tickets before this one are theirs
-- A free lock has no o, and nobody waits for it. The short ways of the scripts look at o only: a later format must keep o = '*',
-- which sends them here, where they refuse it.
local key = KEYS[1]
local window, retention, channel = string.match(rules, '^(%d+) (%d+) (.+)$')
local client = string.match(hold, '^([^ .]+)%.[^ ]+$')
if not window or not client then
    return redis.error_reply('LOCKSTEP_ARGUMENT hold: <client>.<n>, rules: <window_ms> <retention_ms> <channel>')
end
local was = call('HMGET', key, 'v', 'o', 'p', 's', 'e', 'd', 'f', 't', 'x', 'h', 'l', 'z', 'g', 'm', 'w' .. hold)
if was[1] ~= '1' and (was[1] or call('EXISTS', key) == 1) then
    return redis.error_reply('LOCKSTEP_FORMAT this lock is kept in a format that this version does not know')
end
local owner, state, ends, span, last = was[3], was[4], tonumber(was[5]), tonumber(was[6]), tonumber(was[7] or 0)
if was[2] ~= '*' then
    owner, state, span = was[2], 'held', tonumber(was[8])
    ends = owner and (last - last % 1000) / 1000 + span
elseif state ~= 'held' then
    span = tonumber(window)
end
local ended = ends
-- Further away than it is long: the server's clock was set back, and the owner may be dead.
if owner and ends > now + span then ends = now + span end
local set, del = {}, {}

-- Writes what differs. HSET comes first: a server out of memory refuses that one, and then nothing is half done.
local function commit()
    local n = #set
    local function put(index, field, value)
        if value and value ~= was[index] then set[n + 1], set[n + 2], n = field, value, n + 2 end
    end
    local covered = tonumber(was[9] or 0)
    if owner and owner == was[2] and ends == ended and n == 0 then return end
    if owner then
        put(2, 'o', '*')
        put(3, 'p', owner)
        put(4, 's', state)
        if ends ~= tonumber(was[5]) then put(5, 'e', ends) end
        if state == 'held' and span ~= tonumber(was[6]) then put(6, 'd', span) end
        if last ~= tonumber(was[7]) then put(7, 'f', last) end
        if ends > covered then
            put(1, 'v', '1')
            put(9, 'x', ends + retention)
        end
    elseif was[2] then
        for _, field in ipairs({'o', 'p', 's', 'e', 'd'}) do del[#del + 1] = field end
    end
    if n > 0 then call('HSET', key, unpack(set)) end
    if #del > 0 then call('HDEL', key, unpack(del)) end
    if owner and ends > covered then call('PEXPIREAT', key, ends + 2 * retention) end
end

-- Makes this hold the owner; a range of fences only while they are behind the clock, so that they stay larger after a failover.
local function take(ttl, fences)
    local fence = last + 1
    if us > last then fence = us else fences = 1 end
    owner, state, ends, span, last = hold, 'held', now + ttl, ttl, fence + fences - 1
    return {'granted', fence, fences, ttl, now}
end
if owner ~= hold or state ~= 'held' then return {'gone', now} end
if ends > now then
    if now > (tonumber(ARGV[4]) or now) then return {'late', now} end
    ends, span = now + ttl, ttl
    commit()
    return {'renewed', ttl, now}
end
-- Lost, and written down: or a clock that is set back later would bring it back.
-- Who waits for a lock or a pool, in order of tickets. Needs call, hold, client, key, set, del, and was[10] to was[15]: fields h, l,
-- z, g, m and w<hold>. A ticket's neighbours are the numbers next to it, until one of them leaves: then its q<ticket> names them,
-- '<hold> <before> <after>'. So joining writes no neighbour, and leaving two at most. What a waiter wants may follow as a last word.
local head, tail, holes, start = tonumber(was[10]), tonumber(was[11]), tonumber(was[12] or 0), tonumber(was[13])
local suspects, ticket, seen = was[14] or ' ', tonumber(was[15]), {}

local function node(at)
    local known = seen[at]
    if not known then
        local id, before, after, want = string.match(call('HGET', key, 'q' .. at), '^(%S+) ?(%S*) ?(%S*) ?(%S*)$')
        if after == '' then before, want = nil, before end
        known = {id, tonumber(before) or at - 1, tonumber(after) or at + 1, want ~= '' and want or nil}
        seen[at] = known
    end
    return known
end

local function relink(at, before, after)
    local known = node(at)
    known[2], known[3] = before or known[2], after or known[3]
    set[#set + 1] = 'q' .. at
    set[#set + 1] = known[1] .. ' ' .. known[2] .. ' ' .. known[3] .. (known[4] and ' ' .. known[4] or '')
end

local function join(want)
    tail = (tail or 0) + 1
    head, ticket, seen[tail] = head or tail, tail, {hold, tail - 1, tail + 1, want}
    local n = #set
    set[n + 1], set[n + 2], set[n + 3], set[n + 4] = 'q' .. tail, want and hold .. ' ' .. want or hold, 'w' .. hold, tail
end

local function leave(at)
    local id, before, after = unpack(node(at))
    del[#del + 1] = 'q' .. at
    del[#del + 1] = 'w' .. id
    if start == at then start = after end
    if head == tail then
        head, tail, holes, start, suspects = nil, nil, 0, nil, ' '
    elseif at == head then
        head, holes = after, holes - (after - at - 1)
    elseif at == tail then
        tail, holes = before, holes - (at - before - 1)
        if node(before)[3] ~= before + 1 then relink(before, nil, before + 1) end
        if start and start > tail then start = tail + 1 end
    else
        holes = holes + 1
        relink(before, nil, after)
        relink(after, before, nil)
    end
end

-- Puts what changed into set and del. Without a queue none of its fields stay.
local function put_queue()
    local function put(index, field, value)
        local before = was[index]
        if value and value ~= before and value ~= tonumber(before) then
            set[#set + 1], set[#set + 2] = field, value
        elseif before and not value then
            del[#del + 1] = field
        end
    end
    put(10, 'h', head)
    put(11, 'l', tail)
    put(12, 'z', holes ~= 0 and holes)
    put(13, 'g', start)
    put(14, 'm', suspects ~= ' ' and suspects)
end

local function is_suspect(name) return string.find(suspects, ' ' .. name .. ' ', 1, true) end

-- One that let an offer lapse is suspect, unless it is calling now.
local function suspect(id)
    local name = string.match(id, '^[^.]+')
    if not head or name == client or is_suspect(name) then return end
    suspects = suspects .. name .. ' '
    if #suspects > 2000 then suspects = string.match(suspects, '^ [^ ]+(.*)$') end
end

-- A client that calls is no suspect.
local function trust()
    local from, to = is_suspect(client)
    if from then suspects, start = string.sub(suspects, 1, from) .. string.sub(suspects, to + 1), nil end
end
-- Finds whom to offer what came free: the first in line that can be reached. It is told. Needs queue. Suspects are passed over.
-- A client that nobody heard for (PUBLISH = 0) is passed over too, and dropped once somebody behind it was heard: while a Cluster slot
-- migrates, zero is not death. When nobody can be reached the first gets a 'doubted' offer, which whoever asks next may take.
local publish, numbers = 'PUBLISH', 'NUMSUB'
if string.find(channel, '{', 1, true) then publish, numbers = 'SPUBLISH', 'SHARDNUMSUB' end
local steps = 0

local function tell(name, id)
    local heard = redis.pcall(publish, channel .. name, id)
    return type(heard) == 'number' and heard or -1
end

local function listeners(name)
    local heard = redis.pcall('PUBSUB', numbers, channel .. name)
    return heard[2] or -1
end

-- The ticket, how many heard, and the state of the offer. With fits(want), nothing if the first that can be reached does not fit:
-- that one is not told, and those behind it wait too.
local function next_in_line(fits)
    local reach, silent, chosen, heard, kept, blocked = {}, {}, nil, 0, false, false
    local at = start or head
    while not chosen and at <= tail and steps < 1000 do
        local id, _, after, want = unpack(node(at))
        local name = string.match(id, '^[^.]+')
        local stuck = fits and not fits(want)
        if id == hold then
            chosen, heard = at, silent[1] and listeners(name) or 1
        elseif is_suspect(name) then
            reach[name] = reach[name] or listeners(name)
        elseif reach[name] ~= 0 then
            reach[name] = stuck and listeners(name) or tell(name, id)
            if reach[name] ~= 0 then chosen, heard = at, reach[name] end
        end
        kept = kept or not chosen and not is_suspect(name)
        if chosen then
            blocked = stuck
        else
            if reach[name] == 0 then silent[#silent + 1] = at end
            at, steps = after, steps + 1
        end
    end
    local state = 'offered'
    if not chosen then
        chosen = steps == 1000 and not kept and at <= tail and at or head
        local id, _, _, want = unpack(node(chosen))
        blocked, state = fits and not fits(want), 'doubted'
        if not blocked then heard = tell(string.match(id, '^[^.]+'), id) end
    elseif heard > 0 then
        for _, gone in ipairs(silent) do leave(gone) end
        kept = false
    end
    if chosen ~= head and not kept then start = chosen end
    if blocked then return end
    return chosen, heard, state
end
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
trust()
settle()
if head then pass_on() end
commit_all()
return {'gone', now}
