--[[ survey: what is held and queued, for people who look. Changes nothing. Knows the formats of lock_state, pool_state, barrier_read and
  the latch's and the broadcast event's scripts.
  KEYS[1..]  objects of any kind, each a hash
  ARGV[1]    most  how much may be read: a hold and an object count as one each
  ARGV[2]    from  where to begin in the holds of a pool: 1, or what `next` was before
  ARGV[3]    with  'clients': also who waits at a latch, a broadcast event or a barrier, where there is no queue
  Returns    {now_ms, then for each key {format, queue, count, taken, holds, next, then for each listed hold: its id, permits, fence, ends_ms,
             span_ms, state}}; format: lock, pool, broadcast, latch, barrier, or as in survey_things and survey_jobs, which say what follows the first six of those; next: 0, or there are more holds from there on
             followed, of an election that somebody leads, by who: '<pid> <host> <id>'; of a latch, a broadcast event and a barrier, instead of holds, by clients
             or, of a key, only {''}: gone, or none of ours; {'later'}: most was reached before, or the budget of survey_size; {'unreadable'}: none of ours, or too large
]]
local call, most, from = redis.call, tonumber(ARGV[1]), tonumber(ARGV[2])
--#include server_time

local function queued(head, tail, holes) return head and tail - head - (holes or 0) + 1 or 0 end

-- Further away than it is long: the clock was set back.
local function ending(ends, span) return math.min(ends, now + span) end

local function read_lock(q)
    local found = {'lock', queued(q[9], q[10], q[11]), 1, 0, 0, 0}
    if not q[2] or (q[2] == '*' and not q[3]) then return found end
    local id, state, fence, span = q[2], 'held', tonumber(q[7]), tonumber(q[8])
    local ends = (fence - fence % 1000) / 1000 + (span or 0)
    if id == '*' then
        id, state, ends = q[3], q[4], tonumber(q[5])
        span = state == 'held' and tonumber(q[6]) or ends - now
    end
    ends = ending(ends, span)
    if ends <= now then return found end
    found[4], found[5], found[7], found[8] = 1, 1, id, 1
    found[9], found[10], found[11], found[12] = state == 'held' and q[7] or '0', ends, span, state
    local leader, who = string.match(q[12] or '', '^(%S+) %S+ (.*)$')
    if leader == id then found[13] = who end
    return found
end

local function read_pool(key)
    local q = call('HMGET', key, 'c', 'u', 'n', 'h', 'l', 'z')
    local used, n = tonumber(q[2] or 0), tonumber(q[3] or 0)
    local found = {'pool', queued(q[4], q[5], q[6]), tonumber(q[1] or -1), used, n, 0}
    local to = math.min(n, from + math.max(most, 1) - 1)
    if to < from then return found end
    if to < n then found[6] = to + 1 end
    most = most - (to - from + 1)
    local fields = {}
    for i = from, to do fields[#fields + 1] = 'o' .. i end
    local ids = call('HMGET', key, unpack(fields))
    for i, id in ipairs(ids) do fields[i] = 'i' .. id end
    for i, text in ipairs(call('HMGET', key, unpack(fields))) do
        local amount, span, fence, more = string.match(text, '^%S+ (%S+) (%S+) (%S+)(.*)$')
        local ends, state, mode = string.match(more, '^ (%S+) (%S+) ?%d* ?(%S*)$')
        ends = ending(tonumber(ends) or (fence - fence % 1000) / 1000 + span, tonumber(span))
        if ends <= now then
            found[5] = found[5] - 1
            if (mode or '') == '' then found[4] = found[4] - amount end
        else
            local at = #found
            found[at + 1], found[at + 2], found[at + 3] = ids[i], tonumber(amount), fence
            found[at + 4], found[at + 5], found[at + 6] = ends, tonumber(span), state or 'held'
        end
    end
    return found
end

-- Those who were told already, and those who are gone, are among them; 1,000 at most.
local function with_clients(key, found)
    if ARGV[3] ~= 'clients' then return found end
    if call('HLEN', key) > 100000 then return {'unreadable'} end
    for id in string.gmatch(call('HGET', key, 'w') or '', '[^ ]+') do
        if #found >= 1006 then break end
        found[#found + 1] = id
    end
    for _, field in ipairs(call('HKEYS', key)) do
        if #found >= 1006 then break end
        found[#found + 1] = string.match(field, '^c(.+)') or string.match(field, '^h([^.]+)%.')
    end
    return found
end

--#include queue_state
--#include survey_things
--#include survey_jobs
--#include survey_size
local function read(key)
    if string.find(key, '}:jobs:q:', 1, true) then return read_jobs(key) end
    local word = string.match(key, '^.*:(.*)$')  -- from the end: '[^:]+$' takes the square of a long name's length
    if string.find(key, '}:board:', 1, true) then word = 'board' end  -- that of a period
    if plain[word] then return read_thing(key, nil, word) end
    local q = redis.pcall('HMGET', key, 'v', 'o', 'p', 's', 'e', 'd', 'f', 't', 'h', 'l', 'z', 'n')
    if q.err then return {'unreadable'} end  -- all that is left are hashes
    local kind = q[1]
    if kind == '3' or kind == '1' then return read_lock(q) end
    if kind == '4' or kind == '2' then return read_pool(key) end
    if kind == 'broadcast 1' then return with_clients(key, {'broadcast', 0, 1, call('HEXISTS', key, 's'), 0, 0}) end
    if kind == 'latch 1' then
        local q = call('HMGET', key, 'k', 'l')
        return with_clients(key, {'latch', 0, tonumber(q[1]), q[1] - q[2], 0, 0})
    end
    if kind == 'barrier 1' then
        local q = call('HMGET', key, 'p', 'a')
        return with_clients(key, {'barrier', 0, tonumber(q[1]), tonumber(q[2] or 0), 0, 0})
    end
    return read_thing(key, kind, word)
end

local answer = {now}
for i, key in ipairs(KEYS) do
    if most > 0 and left > 0 then
        most = most - 1
        -- A hash that somebody else wrote must not hide all others.
        local good, found = pcall(read, key)
        local size = good and size_of(found)
        answer[i + 1] = size and found or {'unreadable'}
        left = left - (size or 0)
    else
        answer[i + 1] = {'later'}
    end
end
return answer
