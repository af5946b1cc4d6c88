-- One lock is one hash: read here in full, changed in Lua, written back by commit(). Needs call, hold, rules, us and now (TIME).
--   v  format                 f  last fence given           x  latest end of a lease that the key's expiry allows for
--   o  the owner's hold, its lease ends t ms after f; or '*', and then the owner is p (absent: nobody has it yet, and some wait), its state s,
--      its end e, its length d, and r the number of the last command that set its end (absent: 0)
--   h  first ticket, l last ticket, z holes between them; q<ticket> its hold, w<hold> its ticket (all absent when nobody waits)
--   m  suspects: clients that let an offer lapse and did not call since
-- Format 1 had no numbers: it is read, and becomes format 3 with the next change; from then on clients that know only 1 are refused.
-- A free lock has no o, and nobody waits for it. The short ways of the scripts look at o only: a later format must keep o = '*',
-- which sends them here, where they refuse it.
local key = KEYS[1]
local window, retention, channel = string.match(rules, '^(%d+) (%d+) (.+)$')
local client = string.match(hold, '^([^ .]+)%.[^ ]+$')
if not window or not client then
    return redis.error_reply('LOCKSTEP_ARGUMENT hold: <client>.<n>, rules: <window_ms> <retention_ms> <channel>')
end
local was = call('HMGET', key, 'v', 'o', 'p', 's', 'e', 'd', 'f', 't', 'x', 'h', 'l', 'z', 'm', 'w' .. hold, 'r')
if was[1] ~= '3' and was[1] ~= '1' and (was[1] or call('EXISTS', key) == 1) then
    return redis.error_reply('LOCKSTEP_FORMAT this lock is kept in a format that this version does not know')
end
local owner, state, ends, span, last = was[3], was[4], tonumber(was[5]), tonumber(was[6]), tonumber(was[7] or 0)
local number = tonumber(was[15] or 0)
if was[2] ~= '*' then
    owner, state, span = was[2], 'held', tonumber(was[8])
    ends = owner and (last - last % 1000) / 1000 + span
elseif state ~= 'held' then
    state, span = 'offered', span or tonumber(window)
end
local ended = ends
-- Further away than it is long: the server's clock was set back, and the owner may be dead.
if owner and ends > now + span then ends = now + span end
local set, del = {}, {}

-- Writes what differs. HSET comes first: a server out of memory refuses that one, and then nothing is half done. Who waits for a lock that
-- nobody has keeps o = '*'.
local function commit(waited_for)
    local n = #set
    local function put(index, field, value)
        if value and value ~= was[index] then set[n + 1], set[n + 2], n = field, value, n + 2 end
    end
    local function remove(...)
        for _, field in ipairs({...}) do del[#del + 1] = field end
    end
    local covered = tonumber(was[9] or 0)
    if owner and owner == was[2] and ends == ended and n == 0 and #del == 0 then return end
    if owner then
        put(2, 'o', '*')
        put(3, 'p', owner)
        put(4, 's', state)
        if ends ~= tonumber(was[5]) then put(5, 'e', ends) end
        if span ~= tonumber(was[6]) then put(6, 'd', span) end
        if last ~= tonumber(was[7]) then put(7, 'f', last) end
        if owner ~= (was[3] or was[2]) then number = 0 end
        if number == 0 then
            if was[15] then remove('r') end
        elseif number ~= tonumber(was[15]) then
            put(15, 'r', number)
        end
        if ends > covered then put(9, 'x', ends + retention) end
    elseif waited_for then
        put(2, 'o', '*')
        if was[3] then remove('p', 's', 'e', 'd', 'r') end
    elseif was[2] then
        remove('o', 'p', 's', 'e', 'd', 'r')
    end
    if n > 0 then put(1, 'v', '3') end
    if n > 0 then call('HSET', key, unpack(set)) end
    if #del > 0 then call('HDEL', key, unpack(del)) end
    if owner and ends > covered then call('PEXPIREAT', key, ends + 2 * retention) end
end

-- Makes this hold the owner; a range of fences only while they are behind the clock, so that they stay larger after a failover.
local function take(ttl, fences)
    local fence = last + 1
    if us > last then fence = us else fences = 1 end
    owner, state, ends, span, last, number = hold, 'held', now + ttl, ttl, fence + fences - 1, 0
    return {'granted', fence, fences, ttl, now}
end
