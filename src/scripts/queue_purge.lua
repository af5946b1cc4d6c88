--[[ queue_purge: remove all that wait, those that are put off included. What is held stays with its holders.
  KEYS[1]  queue   hash
  KEYS[2]  ready   list
  KEYS[3]  ranked  sorted set
  KEYS[4]  later   sorted set
  KEYS[5]  items   hash: what is held
  KEYS[6]  dedup   hash
  KEYS[7]  recent  sorted set
  KEYS[8]  room    sorted set: who waits for room
  ARGV[1]  rules   as in queue_push
  Returns  how many were removed
  Errors   LOCKSTEP_ARGUMENT (nothing was written)
]]
local call, key = redis.call, KEYS[1]
local publish, channel = string.match(ARGV[1], '^(S?PUBLISH) %d+ %d+ %d+ %d+ %d+ (.+)$')
if not publish then return redis.error_reply('LOCKSTEP_ARGUMENT rules') end
--#include queue_entry
--#include queue_tell
local removed = call('LLEN', KEYS[2]) + call('ZCARD', KEYS[3]) + call('ZCARD', KEYS[4])
call('UNLINK', KEYS[2], KEYS[3], KEYS[4])
-- Only what is held keeps its key, and what is done for a while.
if call('EXISTS', KEYS[6]) == 1 then
    local kept = {}
    for _, entry in ipairs(call('HVALS', KEYS[5])) do
        local id, _, _, at, _, _, size = open(entry)
        if size > 0 then kept[#kept + 1], kept[#kept + 2] = string.sub(entry, at, at + size - 1), id end
    end
    for _, name in ipairs(call('ZRANGE', KEYS[7], 0, -1)) do
        kept[#kept + 1], kept[#kept + 2] = name, call('HGET', KEYS[6], name) or '-'
    end
    call('UNLINK', KEYS[6])
    for i = 1, #kept, 1000 do call('HSET', KEYS[6], unpack(kept, i, math.min(i + 999, #kept))) end
end
if removed > 0 and call('HEXISTS', key, 'f') == 1 then tell(KEYS[8], 'm', 1000) end
return removed
