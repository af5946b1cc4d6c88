--[[ queue_purge: remove what waits, what is put off included: all of it, or where items have keys a part. What is held stays with its holders.
  KEYS[1]  queue     hash
  KEYS[2]  ready     list
  KEYS[3]  ranked    sorted set
  KEYS[4]  later     sorted set
  KEYS[5]  dedup     hash
  KEYS[6]  recent    sorted set
  KEYS[7]  room      sorted set: who waits for room
  KEYS[8]  record    string: what the last call of this caller did
  ARGV[1]  rules     as in queue_push
  ARGV[2]  sequence  as in queue_push
  ARGV[3]  deadline_ms
  Returns  {'<sequence> <how many were removed> <how many are left>', now_ms} | {'late', now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local memory = KEYS[8]
local besides = {'f'}
--#include checks
--#include queue_rules
--#include queue_state
--#include queue_was
--#include queue_time
--#include queue_once
--#include queue_touch
--#include queue_entry
--#include queue_keys
--#include queue_tell
if sequence == known then return {record, server_now} end
local budget, largest, removed = 4194304, 1e15, 0
--#include read_within
if call('HLEN', KEYS[5]) == call('ZCARD', KEYS[6]) then  -- nothing that waits or is held has a key
    removed = call('LLEN', KEYS[2]) + call('ZCARD', KEYS[3]) + call('ZCARD', KEYS[4])
    call('UNLINK', KEYS[2], KEYS[3], KEYS[4])
else
    local function remove(entries, command, ...)
        if #entries == 0 then return end
        call(command, ...)
        local names, ids, keys = {}, {}, {}
        for _, entry in ipairs(entries) do
            local id, _, _, at, _, _, size = open(entry)
            if size > 0 then names[#names + 1], ids[#ids + 1] = string.sub(entry, at, at + size - 1), id end
        end
        for i, text in ipairs(#names > 0 and call('HMGET', KEYS[5], unpack(names)) or {}) do
            if text and string.match(text, '^%S+') == ids[i] then keys[#keys + 1] = names[i] end
        end
        in_chunks('HDEL', KEYS[5], keys)
        removed = removed + #entries
    end
    for i = 2, 4 do
        local list = i == 2 and read_within(250 - removed, 1, function(from, n) return call('LRANGE', KEYS[2], from, from + n - 1) end)
            or read_within(250 - removed, 1, function(from, n) return call('ZRANGE', i == 3 and KEYS[3] or KEYS[4], from, from + n - 1) end)
        if i == 2 then
            remove(list, 'LTRIM', KEYS[2], #list, -1)
        else
            local entries = {}
            for n, member in ipairs(list) do entries[n] = i == 3 and string.sub(member, 24) or member end
            remove(entries, 'ZREM', i == 3 and KEYS[3] or KEYS[4], unpack(list))
        end
    end
    limit_keys(KEYS[5], KEYS[6])
end
local rest = call('LLEN', KEYS[2]) + call('ZCARD', KEYS[3]) + call('ZCARD', KEYS[4])
local answer = string.format('%.0f %d %d', sequence, removed, rest)
remember(answer)
if removed > 0 and has[2] then tell(KEYS[7], 'm', 1000) end
return {answer, server_now}
