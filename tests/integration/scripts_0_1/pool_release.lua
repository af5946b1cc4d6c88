--[[ pool_release: give permits back and offer them to the next in line; or stop waiting for them (cancel). Asked again by a hold
  that has neither, it looks whether offers or leases have run out, and passes them on.
  KEYS[1]  pool     hash
  ARGV[1]  hold     id of the hold
  ARGV[2]  rules    as in lock_acquire
  ARGV[3]  leaving  if '1', also tell the first that still waits: the caller will not be there to look after the claim window
  ARGV[4]  unused   if given: nobody had any use of the hold, so this is how many permits come back if it has used them up
  Returns  1 (released, nobody waited) | {'released', now_ms, first hold it was offered to or '', how many heard (-1: cannot be known)}
           | {'cancelled', now_ms, the same two} | {'gone', now_ms, the same two}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local call, hold, rules = redis.call, ARGV[1], ARGV[2]
-- The short ways when nobody waits: the only hold, or one of several that shares nothing with them. The last one moves into its slot.
local short = call('HMGET', KEYS[1], 'i' .. hold, 'n', 'h', 'v')
local n, head = short[2], short[3]
if short[1] and n == '1' and not head and short[4] == '2' and not ARGV[4] then
    call('HDEL', KEYS[1], 'n', 'u', 'o1', 'i' .. hold)
    return 1
end
local index, amount, more = string.match(short[1] or '', '^(%S+) (%S+) %S+ %S+(.*)$')
if index and not head and short[4] == '2' and not ARGV[4] and not string.find(more, ' g', 1, true) then
    local q = call('HMGET', KEYS[1], 'u', 'o' .. n)
    local set = {'n', n - 1, 'u', (q[1] or 0) - amount}
    if index ~= n then
        local text = call('HGET', KEYS[1], 'i' .. q[2])
        set[5], set[6], set[7], set[8] = 'o' .. index, q[2], 'i' .. q[2], index .. string.match(text, ' .*')
    end
    call('HSET', KEYS[1], unpack(set))
    call('HDEL', KEYS[1], 'o' .. n, 'i' .. hold)
    return 1
end

-- The server's time in µs and in whole ms. Needs call.
local time = call('TIME')
local us = time[1] * 1000000 + time[2]
local now = (us - us % 1000) / 1000
-- The usual way when all is taken and others wait: the first of them wants as much as this one has, hears of it, and gets its place.
-- What the rest below would do, without the price of it.
local window, channel = string.match(rules, '^(%d+) %d+ (.+)$')
if head and index and window and (more == '' or string.find(more, ' held$')) and short[4] == '2' and not ARGV[3] then
    local q = call('HMGET', KEYS[1], 'b', 'x', 'm', 'c', 'u', 'l', 'q' .. head)
    local next, want, links = string.match(q[7], '^(%S+) ?(%S*) ?(%S*)')
    if q[1] + 0 > now and now + window <= q[2] + 0 and not q[3] and q[4] == q[5] and links == ''
        and (want == '' and '1' or want) == amount then
        local publish = string.find(channel, '{', 1, true) and 'SPUBLISH' or 'PUBLISH'
        local heard = redis.pcall(publish, channel .. string.match(next, '^[^.]+'), next)
        if type(heard) == 'number' and heard > 0 then
            local ends = now + window
            local text = index .. ' ' .. amount .. ' ' .. window .. ' 0 ' .. ends .. ' offered'
            call('HSET', KEYS[1], 'o' .. index, next, 'i' .. next, text, 'b', math.min(ends, q[1]), 'd', window, 'h', head + 1)
            call('HDEL', KEYS[1], 'i' .. hold, 'q' .. head, 'w' .. next, unpack(head == q[6] and {'h', 'l', 'z'} or {}))
            return {'released', now, next, heard}
        end
    end
end
-- One pool of permits is one hash: what is always needed of it is read here, changed in Lua, and written back by commit(). Needs call,
-- hold, rules, us and now (TIME). Scripts that act for no hold say '-.0', which no client is called.
--   v  format                 t  last fence given           x  latest end of a lease that the key's expiry allows for
--   c  how many permits there are (absent: not created yet)   u  how many of them are taken; more than c after a resize
--   n  how many holds, held or offered: o1 to o<n> name them in any order, and each is i<hold> '<index> <permits> <span> <fence>',
--      held for span ms from its fence on, or '<index> <permits> <span> <fence> <end> <state>[ <mode>]'
--   b  no hold ends before this, and d the length of the one that does first; b = 0: one is doubted, so look at them all
--   h l z g m q<ticket> w<hold>  who waits, as in lock_state; the last word of q<ticket> is '<permits>[<mode>]', none for '1'
--   a<session> r<number> rf rl  what pool_add has counted, as in once
-- Modes: c, the permits are used up when granted; g<owner>, the holds of one owner share one set of permits and one fence.
-- A hold's number in o<index> is the only way to find all holds without the waiters. No field is called o or f: so the short ways of
-- the lock's scripts do not take a pool for a free lock.
local key = KEYS[1]
local window, retention, channel = string.match(rules, '^(%d+) (%d+) (.+)$')
local client = string.match(hold, '^([^ .]+)%.[^ ]+$')
if not window or not client then
    return redis.error_reply('LOCKSTEP_ARGUMENT hold: <client>.<n>, rules: <window_ms> <retention_ms> <channel>')
end
local was = call('HMGET', key, 'v', 'c', 'u', 'n', 'b', 'd', 't', 'x', 'i' .. hold, 'h', 'l', 'z', 'g', 'm', 'w' .. hold)
if was[1] ~= '2' and (was[1] or call('EXISTS', key) == 1) then
    return redis.error_reply('LOCKSTEP_FORMAT this pool is kept in a format that this version does not know')
end
local count, used, n, last = tonumber(was[2]), tonumber(was[3] or 0), tonumber(was[4] or 0), tonumber(was[7] or 0)
local bound, bound_span = tonumber(n > 0 and was[5]), tonumber(was[6])
local set, del, slots, changed, dropped, doubts, need = {}, {}, {}, {}, {}, false, 0

local function touch(one)
    if not one.changed then changed[#changed + 1] = one end
    one.changed = true
end

-- Every end that is set passes here.
local function heed(one)
    if not bound or one.ends < bound then bound, bound_span = one.ends, one.span end
    doubts, need = doubts or one.state == 'doubted', math.max(need, one.ends)
end

local function parse(id, text)
    local index, amount, span, fence, more = string.match(text, '^(%S+) (%S+) (%S+) (%S+)(.*)$')
    local ends, state, mode = string.match(more, '^ (%S+) (%S+) ?(%S*)$')
    local one = {id = id, index = index + 0, amount = amount + 0, span = span + 0, fence = fence + 0, ends = tonumber(ends),
                 state = state or 'held', mode = mode or ''}
    one.ends = one.ends or (one.fence - one.fence % 1000) / 1000 + one.span
    if one.ends > now + one.span then  -- the server's clock was set back, and the holder may be dead
        one.ends = now + one.span
        touch(one)
        heed(one)
    end
    slots[one.index] = one
    return one
end
local mine = was[9] and parse(hold, was[9])

local function write(command, words)
    for from = 1, #words, 4000 do call(command, key, unpack(words, from, math.min(#words, from + 3999))) end
end

-- Writes what differs. HSET comes first: a server out of memory refuses that one, and then nothing is half done.
local function commit()
    local function put(index, field, value)
        if value and value ~= tonumber(was[index]) then set[#set + 1], set[#set + 2] = field, value end
        if not value and was[index] then del[#del + 1] = field end
    end
    for _, one in ipairs(changed) do
        if not one.gone then
            local text = string.format('%d %.0f %.0f %.0f %.0f %s', one.index, one.amount, one.span, one.fence, one.ends, one.state)
            put(0, 'i' .. one.id, one.mode == '' and text or text .. ' ' .. one.mode)
            if one.moved then put(0, 'o' .. one.index, one.id) end
        end
    end
    for i = n + 1, tonumber(was[4] or 0) do del[#del + 1] = 'o' .. i end
    for id in pairs(dropped) do del[#del + 1] = 'i' .. id end
    put(2, 'c', count)
    put(3, 'u', used ~= 0 and used)
    put(4, 'n', n ~= 0 and n)
    if n > 0 then
        put(5, 'b', doubts and 0 or bound)
        put(6, 'd', bound_span)
    end
    put(7, 't', last ~= 0 and last)
    local move = need > tonumber(was[8] or 0)
    if move then
        put(0, 'v', '2')
        put(8, 'x', need + retention)
    end
    write('HSET', set)
    write('HDEL', del)
    if move then call('PEXPIREAT', key, need + 2 * retention) end
end
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
trust()
local answer = {'gone', now}
if mine then
    if ARGV[4] and mine.mode == 'c' and mine.state == 'held' then count = count + ARGV[4] end
    drop(mine)
    answer = {'released', now, '', 0}
elseif ticket then
    leave(ticket)
    answer = {'cancelled', now}
end
settle()
local first, heard = pass_on()
answer[3], answer[4] = first, heard
if ARGV[3] == '1' then
-- Tells the first that still waits: who calls will not be there to look, after the claim window, whether the offer was taken. Needs queue and
-- next_in_line.
if head then
    local second = node(start and start <= tail and start or head)[1]
    tell(string.match(second, '^[^.]+'), second)
end
end
commit_all()
return answer
