--[[ survey: what is held and queued, for people who look. Changes nothing, and knows the formats of lock_state, pool_state, barrier_read and
  the latch's and the broadcast event's scripts.
  KEYS[1..]  objects of any kind, each a hash
  ARGV[1]    how many holds of each are listed at most
  Returns    {now_ms, then for each key {format, queue, count, taken, holds, then for each listed hold: its id, permits, fence, ends_ms, span_ms,
             state}}; format: lock, pool, broadcast, latch, barrier; '' and nothing more: gone, or none of ours
]]
local call, most = redis.call, tonumber(ARGV[1])
--#include server_time

local function queued(head, tail, holes) return head and tail - head - (holes or 0) + 1 or 0 end

-- Further away than it is long: the clock was set back.
local function ending(ends, span) return math.min(ends, now + span) end

local function read_lock(key)
    local q = call('HMGET', key, 'o', 'p', 's', 'e', 'd', 'f', 't', 'h', 'l', 'z')
    local found = {'lock', queued(q[8], q[9], q[10]), 1, 0, 0}
    if not q[1] then return found end
    local id, state, fence, span = q[1], 'held', tonumber(q[6]), tonumber(q[7])
    local ends = (fence - fence % 1000) / 1000 + (span or 0)
    if id == '*' then
        id, state, ends = q[2], q[3], tonumber(q[4])
        span = state == 'held' and tonumber(q[5]) or ends - now
    end
    ends = ending(ends, span)
    if ends <= now then return found end
    found[4], found[5], found[6], found[7] = 1, 1, id, 1
    found[8], found[9], found[10], found[11] = string.format('%.0f', state == 'held' and fence or 0), ends, span, state
    return found
end

local function read_pool(key)
    local q = call('HMGET', key, 'c', 'u', 'n', 'h', 'l', 'z')
    local used, n = tonumber(q[2] or 0), tonumber(q[3] or 0)
    local found = {'pool', queued(q[4], q[5], q[6]), tonumber(q[1] or -1), used, n}
    for from = 1, n, 1000 do
        local fields = {}
        for i = from, math.min(n, from + 999) do fields[#fields + 1] = 'o' .. i end
        local ids = call('HMGET', key, unpack(fields))
        for i, id in ipairs(ids) do fields[i] = 'i' .. id end
        for i, text in ipairs(call('HMGET', key, unpack(fields))) do
            local amount, span, fence, more = string.match(text, '^%S+ (%S+) (%S+) (%S+)(.*)$')
            local ends, state, mode = string.match(more, '^ (%S+) (%S+) ?(%S*)$')
            ends = ending(tonumber(ends) or (fence - fence % 1000) / 1000 + span, tonumber(span))
            if ends <= now then
                found[5] = found[5] - 1
                if (mode or '') == '' then found[4] = found[4] - amount end
            elseif #found < 5 + 6 * most then
                local at = #found
                found[at + 1], found[at + 2], found[at + 3] = ids[i], tonumber(amount), fence
                found[at + 4], found[at + 5], found[at + 6] = ends, tonumber(span), state or 'held'
            end
        end
    end
    return found
end

local answer = {now}
for i, key in ipairs(KEYS) do
    local kind = redis.pcall('HGET', key, 'v')
    local found = {''}
    if kind == '1' then
        found = read_lock(key)
    elseif kind == '2' then
        found = read_pool(key)
    elseif kind == 'broadcast 1' then
        found = {'broadcast', 0, 1, call('HEXISTS', key, 's'), 0}
    elseif kind == 'latch 1' then
        local q = call('HMGET', key, 'k', 'l')
        found = {'latch', 0, tonumber(q[1]), q[1] - q[2], 0}
    elseif kind == 'barrier 1' then
        local q = call('HMGET', key, 'p', 'a')
        found = {'barrier', 0, tonumber(q[1]), tonumber(q[2] or 0), 0}
    end
    answer[i + 1] = found
end
return answer
