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
