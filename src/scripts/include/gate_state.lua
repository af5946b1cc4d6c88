-- Each object is one hash, whose field v names its kind and format. Needs gate_rules, the format this script knows, and what was
-- in the hash (was[1] is v). Goes on only if there is no such hash, or it is of that format.
if was[1] ~= format and (was[1] or call('EXISTS', key) == 1) then
    return redis.error_reply('LOCKSTEP_FORMAT this is not in the format "' .. format .. '"')
end
local time = call('TIME')
local us = time[1] * 1000000 + time[2]
local now = (us - us % 1000) / 1000

-- The hash stays for retention after its last use and the span that use asks for; at most twice that, so that it is moved seldom.
local function keep(span)
    local least = (span or 0) + retention
    if call('PTTL', key) < least then call('PEXPIRE', key, least + retention) end
end

-- HDEL of any number of fields: unpack() has a limit.
local function remove(fields)
    for i = 1, #fields, 1000 do call('HDEL', key, unpack(fields, i, math.min(i + 999, #fields))) end
end

-- Writes and deletes these fields. HSET comes first: a server out of memory refuses that one, and then nothing is half done.
local function change(set, del)
    call('HSET', key, unpack(set))
    remove(del)
    keep()
end

-- Tells clients (the table's keys) that something changed here. A hint: who does not hear it asks again when it is connected again.
-- May fail (a forbidden channel), so it comes last.
local function tell(clients)
    local publish = string.find(channel, '{', 1, true) and 'SPUBLISH' or 'PUBLISH'
    for client in pairs(clients) do redis.pcall(publish, channel .. client, '=' .. key) end
end
