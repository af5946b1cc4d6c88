--[[ queue_revive: put dead letters back, behind all that wait, or drop them.
  KEYS[1]  dead     stream
  KEYS[2]  ready    list
  KEYS[3]  ranked   sorted set
  KEYS[4]  waiting  sorted set: who waits for items
  KEYS[5]  lanes    sorted set: lanes by their length, where ready is a lane
  KEYS[6]  queue    hash
  ARGV[1]  rules    as in queue_push
  ARGV[2]  what     'back' or 'drop'
  ARGV[3]  from     the first, by the id of the letter; '-': the first of all
  ARGV[4]  to       the last; '+': the last of all
  ARGV[5]  lane     its name; '': it is none
  Returns  how many; at most 500 in one call
  Errors   LOCKSTEP_ARGUMENT (nothing was written)
]]
local call, key = redis.call, KEYS[6]
local publish, channel = string.match(ARGV[1], '^(S?PUBLISH) %d+ %d+ %d+ %d+ %d+ (.+)$')
if not publish or not string.find(ARGV[2], '^%l+$') then return redis.error_reply('LOCKSTEP_ARGUMENT rules, or what: back or drop') end
--#include queue_entry
--#include queue_tell
local letters = call('XRANGE', KEYS[1], ARGV[3], ARGV[4], 'COUNT', 500)
if #letters == 0 then return 0 end
local ids, plain, ranked = {}, {}, {}
for i, letter in ipairs(letters) do
    ids[i] = letter[1]
    local id, _, _, at, priority, _, size = open(letter[2][6])
    local payload = string.sub(letter[2][6], at + size)
    -- Without its key: another one may have it now.
    id = string.gsub(id, 'd$', '')
    if priority == 0 then
        plain[#plain + 1] = id .. ' 0\n' .. payload
    else
        ranked[#ranked + 1], ranked[#ranked + 2] = -priority, order_of(id) .. ' ' .. id .. ' 0 ' .. priority .. ' 0 0\n' .. payload
    end
end
if ARGV[2] == 'back' then
    in_chunks('RPUSH', KEYS[2], plain)
    in_chunks('ZADD', KEYS[3], ranked)
    if ARGV[5] ~= '' then call('ZADD', KEYS[5], call('LLEN', KEYS[2]), ARGV[5]) end
end
call('XDEL', KEYS[1], unpack(ids))
if call('XLEN', KEYS[1]) == 0 then call('DEL', KEYS[1]) end
if ARGV[2] == 'back' then tell(KEYS[4], 'r', math.min(#ids, 8)) end
return #ids
