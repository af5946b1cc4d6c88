-- One pool of permits is one hash: what is always needed of it is read here, changed in Lua, and written back by commit(). Needs call,
-- hold, rules, us and now (TIME). Scripts that act for no hold say '-.0', which no client is called.
--   v  format                 t  last fence given           x  latest end of a lease that the key's expiry allows for
--   c  how many permits there are (absent: not created yet)   u  how many of them are taken; more than c after a resize
--   n  how many holds, held or offered: o1 to o<n> name them in any order, and each is i<hold> '<index> <permits> <span> <fence>',
--      held for span ms from its fence on, or '<index> <permits> <span> <fence> <end> <state>[ <number>][ <mode>]': the number of the last
--      command that set its end, or of what is offered its place among the offers
--   e  '<first> <end>' and j the last number of the offers, of which none ends before that; y<number> the hold of one that is open
--   g<owner>  '<holds> <of these held> <fence>' of an owner whose holds share one set of permits and one fence
--   b  no lease ends before this, and d the length of the one that does first
--   k  '<index> <end> <span>': the search for leases that are over goes on there, and found this end to be the first so far
--   h l z m q<ticket> w<hold>  who waits, as in queue; what one wants is '<permits>[<mode>]', nothing for '1'
--   a<session> r<number> rf rl  what changed the permits and has counted, as in once
-- Modes: c, the permits are used up when granted; g<owner>, as above.
-- Format 2 had neither numbers, e, j, y, g<owner> nor k: pool_upgrade makes format 4 of it, and clients that know only 2 are refused then.
-- A hold's number in o<index> is the only way to find all holds without the waiters. No field is called o or f: so the short ways of
-- the lock's scripts do not take a pool for a free lock.
local key = KEYS[1]
local window, retention, channel = string.match(rules, '^(%d+) (%d+) (.+)$')
local client = string.match(hold, '^([^ .]+)%.[^ ]+$')
if not window or not client then
    return redis.error_reply('LOCKSTEP_ARGUMENT hold: <client>.<n>, rules: <window_ms> <retention_ms> <channel>')
end
local was = call('HMGET', key, 'v', 'c', 'u', 'n', 'b', 'd', 't', 'x', 'i' .. hold, 'h', 'l', 'z', 'm', 'w' .. hold, 'e', 'j', 'k')
if was[1] ~= '4' and was[1] ~= '2' and (was[1] or call('EXISTS', key) == 1) then
    return redis.error_reply('LOCKSTEP_FORMAT this pool is kept in a format that this version does not know')
end
local count, used, n, last = tonumber(was[2]), tonumber(was[3] or 0), tonumber(was[4] or 0), tonumber(was[7] or 0)
local bound, bound_span = tonumber(n > 0 and was[5]), tonumber(was[6])
local first_offer, offers_end = string.match(was[15] or '1 0', '^(%d+) (%d+)$')
first_offer, offers_end = tonumber(first_offer), tonumber(was[15] and offers_end)
local last_offer = tonumber(was[16] or 0)
local set, del, slots, by_id, changed, dropped, groups, need = {}, {}, {}, {}, {}, {}, {}, 0
-- The search for leases that are over: the index it goes on at, the first end found so far, and its length.
local cursor, found_bound, found_span = string.match(was[17] or '', '^(%d+) ?(%d*) ?(%d*)$')
cursor, found_bound, found_span = tonumber(cursor), tonumber(found_bound), tonumber(found_span)

local function touch(one)
    if not one.changed then changed[#changed + 1] = one end
    one.changed = true
end

-- Every end that is set passes here.
local function heed(one)
    need = math.max(need, one.ends)
    if one.state == 'offered' then offers_end = math.min(offers_end or one.ends, one.ends) end
    if one.state ~= 'held' then return end
    if not bound or one.ends < bound then bound, bound_span = one.ends, one.span end
    if cursor and (not found_bound or one.ends < found_bound) then found_bound, found_span = one.ends, one.span end
end

local function parse(id, text)
    if by_id[id] then return by_id[id] end
    local index, amount, span, fence, more = string.match(text, '^(%S+) (%S+) (%S+) (%S+)(.*)$')
    local ends, state, number, mode = string.match(more, '^ (%S+) (%S+) ?(%d*) ?(%S*)$')
    local one = {id = id, index = index + 0, amount = amount + 0, span = span + 0, fence = fence + 0, ends = tonumber(ends),
                 state = state or 'held', number = tonumber(number) or 0, mode = mode or ''}
    one.ends = one.ends or (one.fence - one.fence % 1000) / 1000 + one.span
    slots[one.index], by_id[id] = one, one
    if one.ends > now + one.span then  -- the server's clock was set back, and the holder may be dead
        one.ends = now + one.span
        touch(one)
        heed(one)
    end
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
            if one.number ~= 0 then text = text .. string.format(' %.0f', one.number) end
            put(0, 'i' .. one.id, one.mode == '' and text or text .. ' ' .. one.mode)
            if one.moved then put(0, 'o' .. one.index, one.id) end
        end
    end
    for i = n + 1, tonumber(was[4] or 0) do del[#del + 1] = 'o' .. i end
    for id in pairs(dropped) do del[#del + 1] = 'i' .. id end
    for mode, group in pairs(groups) do
        if group.holds > 0 then
            put(0, mode, string.format('%d %d %.0f', group.holds, group.held, group.fence))
        else
            del[#del + 1] = mode
        end
    end
    put(2, 'c', count)
    put(3, 'u', used ~= 0 and used)
    put(4, 'n', n ~= 0 and n)
    if n > 0 then
        put(5, 'b', bound)
        put(6, 'd', bound and bound_span)
    end
    put(7, 't', last ~= 0 and last)
    local open = first_offer <= last_offer
    local offers = open and string.format('%d %.0f', first_offer, offers_end or now)
    if offers ~= was[15] then put(15, 'e', offers) end
    put(16, 'j', open and last_offer)
    local search = cursor and string.format(found_bound and '%d %.0f %.0f' or '%d', cursor, found_bound or 0, found_span or 0)
    if search ~= (was[17] or nil) then put(17, 'k', search) end
    local move = need > tonumber(was[8] or 0)
    if move then put(8, 'x', need + retention) end
    if #set > 0 and was[1] ~= '4' then put(0, 'v', '4') end
    write('HSET', set)
    write('HDEL', del)
    if move then call('PEXPIREAT', key, need + 2 * retention) end
end
