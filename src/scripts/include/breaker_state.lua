-- A circuit breaker is one hash. Needs rules and, where outcomes are counted, session.
--   s  'closed' | 'open' | 'half_open'     n  version: grows with every change of s     t  since when, ms
--   u  open: from when on it may be probed, ms; 0: held open by hand     d  how long that was to be, ms
--   w  half open: how many probes have succeeded     p  probes under way, '<id> <end of its lease in ms> ' each
--   c0 to c9  '<number of the slice of time> <successes> <failures>'
--   f  hosts with a reporter whose own counts are bad, the latest first, as many as the quorum at most: '<session>@<host> <when, ms> ' each, of its latest one
local call, key = redis.call, KEYS[1]
local function refuse(what) return redis.error_reply('LOCKSTEP_ARGUMENT ' .. what) end
local numbers = {}
for word in string.gmatch(rules, '%S+') do numbers[#numbers + 1] = tonumber(word) end
if #numbers ~= 10 then
    return refuse('rules: threshold, parts in 10^6, minimum, reporters, sampling_ms, recovery_ms, probes, successes, lease_ms, shard')
end
local threshold, ratio, minimum, reporters, sampling, recovery, probes, successes, lease, shard = unpack(numbers)
local was = call('HMGET', key, 'v', 's', 'n', 't', 'u', 'd', 'w', 'p', 'f', 'rf', 'rl', session and 'a' .. session or 'v',
    'c0', 'c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c7', 'c8', 'c9', 'rt')
if was[1] ~= 'breaker 1' and (was[1] or call('EXISTS', key) == 1) then
    return redis.error_reply('LOCKSTEP_FORMAT this is not in the format "breaker 1"')
end
local time = call('TIME')
local us = time[1] * 1000000 + time[2]
local now = (us - us % 1000) / 1000
local state, version, since = was[2] or 'closed', tonumber(was[3] or 0), tonumber(was[4] or 0)
local opens, span = tonumber(was[5] or 0), tonumber(was[6] or 0)
local set, del = {}, {}
local function put(field, value) set[#set + 1], set[#set + 2] = field, value end
-- Further away than it was to be: the server's clock was set back.
if state == 'open' and opens > now + span then
    opens = now + span
    put('u', opens)
end

-- What is left of a list of '<id> <ms> ', as a table and in order; those whose time is not within (from, to] are left out.
local function listed(text, from, to)
    local order, times = {}, {}
    for id, ms in string.gmatch(text or '', '(%S+) (%d+) ') do
        if tonumber(ms) > from and tonumber(ms) <= to then order[#order + 1], times[id] = id, tonumber(ms) end
    end
    return order, times
end
local function written(order, times)
    local list = {}
    for i, id in ipairs(order) do list[i] = string.format('%s %.0f ', id, times[id]) end
    return table.concat(list)
end

-- Until it may be probed; -1: not before it is closed by hand.
local function wait()
    if state ~= 'open' then return 0 end
    return opens == 0 and -1 or math.max(opens - now, 0)
end

-- Held open it stays a month after it was last looked at; otherwise until nothing is left that could matter.
local function commit()
    if #set > 0 then call('HSET', key, 'v', 'breaker 1', unpack(set)) end
    if #del > 0 then call('HDEL', key, unpack(del)) end
    local stays = wait() < 0 and 2592000000 or wait() + 2 * (sampling + recovery) + lease + 3600000
    -- Who only reads must not fail because the server takes no writes just now.
    if #set > 0 or was[1] then redis.pcall('PEXPIRE', key, stays) end
end

local function go(to, span_ms)
    state, version, since = to, math.max(version + 1, us), now
    put('s', to)
    put('n', version)
    put('t', now)
    put('p', '')
    put('w', 0)
    if to == 'open' then
        opens, span = span_ms < 0 and 0 or now + span_ms, math.max(span_ms, 0)
        put('u', opens)
        put('d', span)
    end
    for i = 0, 9 do del[#del + 1] = 'c' .. i end
    del[#del + 1] = 'f'
end

-- All that have this breaker hear of it. May fail (a forbidden channel), so it comes last; who does not hear it is told with its next report.
local function tell()
    redis.pcall(shard == 1 and 'SPUBLISH' or 'PUBLISH', key, string.format('%s %.0f %.0f %.0f %.0f', state, version, since, wait(), now))
end
