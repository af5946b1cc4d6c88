--[[ queue_push: put items into a queue, all that it has room for, and tell those who wait for them.
  KEYS[1]  queue     hash
  KEYS[2]  ready     list: items of priority 0
  KEYS[3]  ranked    sorted set: items of other priorities, the largest first
  KEYS[4]  later     sorted set: items that are put off, by the time when they are due
  KEYS[5]  dedup     hash: keys of items, and which items have them; of those that are done also until when they count, behind a space
  KEYS[6]  recent    sorted set: keys of items that are done, and until when they count
  KEYS[7]  waiting   sorted set: who waits for items
  KEYS[8]  room      sorted set: who waits for room
  KEYS[9]  record    string: what the last call of this caller did
  ARGV[1]  rules     'PUBLISH|SPUBLISH <retention_ms> <lease_ms> <max_deliveries> <max_dead> <max_length> <channel>'; 0: any length
  ARGV[2]  sequence  grows with each call of the caller; the same again: the same answer, and nothing is done
  ARGV[3]  deadline_ms  the server's time after which this must not run any more
  ARGV[4]  name      who is to be told when there is room; '': nobody
  ARGV[5..]          for each item: '' or '<delay_ms> <priority> <window_ms> <key>', and its payload
  Returns  {'<sequence> <batch> <accepted> <now_ms>[ <n>=<id of the item that has its key>]...', how many were told} | {'late', now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local memory, dedup, recent = KEYS[9], KEYS[5], KEYS[6]
--#include queue_rules
--#include server_time
--#include queue_once
--#include queue_entry
--#include queue_tell
--#include queue_tell_time
if sequence == known then return {record, 1} end
local count, room, told = (#ARGV - 4) / 2, 1e15, 0
if most_length > 0 then room = most_length - call('LLEN', KEYS[2]) - call('ZCARD', KEYS[3]) - call('ZCARD', KEYS[4]) end
local batch = string.format('%.0f', math.max((was[2] or 0) + 1, us))
local plain, ranked, later, keys, twins, accepted, earliest = {}, {}, {}, {}, {}, count, 1e15

local function twin_of(name)
    if keys[name] then return keys[name] end
    local id, until_ms = string.match(call('HGET', dedup, name) or '', '^(%S+) ?(%d*)$')
    return id and not (until_ms ~= '' and until_ms + 0 <= now) and id or nil
end

for i = 1, count do
    local options, payload = ARGV[3 + 2 * i], ARGV[4 + 2 * i]
    local delay, priority, window, name = string.match(options, '^(%d+) (%-?%d+) (%d+) (.*)$')
    if options ~= '' and not delay then return refuse('options: <delay_ms> <priority> <window_ms> <key>') end
    local twin = name and name ~= '' and twin_of(name)
    if twin then
        twins[#twins + 1] = ' ' .. i .. '=' .. twin
    elseif room <= 0 then
        accepted = i - 1
        break
    else
        room = room - 1
        local id = batch .. '-' .. i
        if options == '' then
            plain[#plain + 1] = id .. ' 0\n' .. payload
        else
            if name ~= '' then id, keys[name] = id .. 'd', id .. 'd' end
            local entry = id .. ' 0 ' .. priority .. ' ' .. window .. ' ' .. #name .. '\n' .. name .. payload
            if delay + 0 > 0 then
                earliest = math.min(earliest, now + delay)
                later[#later + 1], later[#later + 2] = now + delay, entry
            elseif priority + 0 ~= 0 then
                ranked[#ranked + 1], ranked[#ranked + 2] = -priority, order_of(id) .. ' ' .. entry
            else
                plain[#plain + 1] = entry
            end
        end
    end
end
if accepted < count and ARGV[4] ~= '' then
    touch('l', batch, 'f', 1)
    call('ZADD', KEYS[8], 'NX', us, ARGV[4])
    call('PEXPIRE', KEYS[8], 300000)
else
    touch('l', batch)
end
in_chunks('RPUSH', KEYS[2], plain)
in_chunks('ZADD', KEYS[3], ranked)
in_chunks('ZADD', KEYS[4], later)
if #later > 0 then lower(earliest) end
for name, id in pairs(keys) do
    call('HSET', dedup, name, id)
    call('ZREM', recent, name)
end
if next(keys) then
    call('PERSIST', dedup)
    call('PERSIST', recent)
end
local done = string.format('%.0f %s %d %.0f%s', sequence, batch, accepted, server_now, table.concat(twins))
remember(done)
if #plain + #ranked > 0 then told = tell(KEYS[7], 'r', math.min(#plain + #ranked / 2, 8)) end
if told > 0 then was[6] = false end
if #later > 0 then tell_time(KEYS[7], earliest) end
return {done, told}
