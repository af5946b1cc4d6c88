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
  ARGV[6]  to        the last
  ARGV[7]  lane      its name; '': it is none
  Returns  {'<sequence> <how many, 500 at most>', now_ms} | {'late', now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local memory = KEYS[7]
local besides
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
local letters = call('XRANGE', KEYS[6], ARGV[5], ARGV[6], 'COUNT', 500)
if #letters == 0 then return {ARGV[2] .. ' 0', server_now} end
local ids, plain, ranked = {}, {}, {}
for i, letter in ipairs(letters) do
    ids[i] = letter[1]
    local _, _, _, at, priority, _, size = open(letter[2][6])
    -- Without its key: another one may have it now. With an id of its own: under the old one somebody may still say something of it.
    local payload, id = string.sub(letter[2][6], at + size), batch .. '-' .. i
    if priority == 0 then
        plain[#plain + 1] = id .. ' 0\n' .. payload
    else
        ranked[#ranked + 1], ranked[#ranked + 2] = -priority, order_of(id) .. ' ' .. id .. ' 0 ' .. priority .. ' 0 0\n' .. payload
    end
end
if ARGV[4] == 'back' then
    touch(true)
    in_chunks('RPUSH', KEYS[2], plain)
    in_chunks('ZADD', KEYS[3], ranked)
    if ARGV[7] ~= '' then call('ZADD', KEYS[5], call('LLEN', KEYS[2]), ARGV[7]) end
end
call('XDEL', KEYS[6], unpack(ids))
if call('XLEN', KEYS[6]) == 0 then call('DEL', KEYS[6]) end
local answer = string.format('%.0f %d', sequence, #ids)
remember(answer)
if ARGV[4] == 'back' then tell(KEYS[4], 'r', math.min(#ids, 8)) end
return {answer, server_now}
