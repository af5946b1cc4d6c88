--[[ queue_revive: put dead letters back as new items, behind all that wait, or drop them.
  KEYS[1]  queue     hash
  KEYS[2]  ready     list
  KEYS[3]  ranked    sorted set
  KEYS[4]  waiting   sorted set: who waits for items
  KEYS[5]  lanes     sorted set: lanes by their length, where ready is a lane
  KEYS[6]  dead      stream
  KEYS[7]  record    string: what the last call of this caller did
  ARGV[1]  rules     as in queue_push
  ARGV[2]  sequence  as in queue_push
  ARGV[3]  deadline_ms
  ARGV[4]  what      'back' or 'drop'
  ARGV[5]  from      the first, by the id of the letter; '-': the first of all
  ARGV[6]  to        the last; '-<age_ms>': the last that died so long ago
  ARGV[7]  lane      its name; '': it is none
  Returns  {'<sequence> <how many, 500 at most> <to, as an id>', now_ms} | {'late', now_ms}; there may be more unless none were found
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local memory = KEYS[7]
local besides
local most, most_bytes, bytes = 500, 4194304, 0  -- of one call, so that it takes some ms
--#include checks
--#include queue_rules
--#include queue_state
--#include queue_was
--#include queue_time
--#include queue_once
--#include queue_touch
if ARGV[4] ~= 'back' and ARGV[4] ~= 'drop' then return refuse('what: back or drop') end
--#include queue_batch
--#include queue_entry
--#include queue_tell
if sequence == known then return {record, server_now} end
local age = string.match(ARGV[6], '^%-(%d+)$')
-- The newest letter of all, where none is too young: its id is later than the time if the clock was set back since.
local function newest()
    local letter = call('XREVRANGE', KEYS[6], '+', '-', 'COUNT', 1)[1]
    return letter and letter[1] or '0'
end
local from, to = ARGV[5], not age and ARGV[6] or age == '0' and newest() or string.format('%.0f', server_now - age)
local ids, plain, ranked = {}, {}, {}
local function add(letter)
    local i = #ids + 1
    ids[i] = letter[1]
    bytes = bytes + #letter[2][6]
    if ARGV[4] == 'drop' then return end
    local _, _, _, at, priority, _, size = open(letter[2][6])
    -- Without its key: another one may have it now. With an id of its own: under the old one somebody may still say something of it.
    local payload, id = string.sub(letter[2][6], at + size), batch .. '-' .. i
    if priority == 0 then
        plain[#plain + 1] = id .. ' 0\n' .. payload
    else
        ranked[#ranked + 1], ranked[#ranked + 2] = -priority, order_of(id) .. ' ' .. id .. ' 0 ' .. priority .. ' 0 0\n' .. payload
    end
end
repeat
    local letters = call('XRANGE', KEYS[6], from, to, 'COUNT', 10)
    for _, letter in ipairs(letters) do add(letter) end
    from = '(' .. (ids[#ids] or '')
until #letters < 10 or #ids == most or bytes > most_bytes
if #ids == 0 then return {ARGV[2] .. ' 0 ' .. to, server_now} end
if ARGV[4] == 'back' then
    touch(true)
    in_chunks('RPUSH', KEYS[2], plain)
    in_chunks('ZADD', KEYS[3], ranked)
    if ARGV[7] ~= '' then call('ZADD', KEYS[5], call('LLEN', KEYS[2]), ARGV[7]) end
end
call('XDEL', KEYS[6], unpack(ids))
if call('XLEN', KEYS[6]) == 0 then call('DEL', KEYS[6]) end
local answer = string.format('%.0f %d %s', sequence, #ids, to)
remember(answer)
if ARGV[4] == 'back' then tell(KEYS[4], 'r', math.min(#ids, 8)) end
return {answer, server_now}
