--[[ steal_pull: as queue_pull, from a worker's own lane; if that is not enough, whom to steal from is said, and the next call does that.
  KEYS[1]   queue     hash
  KEYS[2]   lane      list: the worker's own
  KEYS[3]   ranked    not used
  KEYS[4]   later     sorted set
  KEYS[5]   held      sorted set
  KEYS[6]   items     hash
  KEYS[7]   dedup     not used
  KEYS[8]   recent    not used
  KEYS[9]   dead      stream
  KEYS[10]  waiting   sorted set
  KEYS[11]  lanes     sorted set: lanes that are not empty, by their length
  KEYS[12]  record    string
  KEYS[13]  victim    list: the lane to steal from; the worker's own if there is none
  ARGV[1]   rules     as in queue_push
  ARGV[2]   sequence  as in queue_push
  ARGV[3]   deadline_ms
  ARGV[4]   want      as in queue_pull
  ARGV[5]   names     '<who is to be told, or nothing>\n<lane>\n<half or one>\n<whom to steal from, or nothing>'
  ARGV[6]   done      how many of the following are done
  ARGV[7..]           include/queue_verdicts.lua
  Returns   as queue_pull, and behind 'waits' the lane to steal from if there is one
  Errors    LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local memory, ready, ranked, later, held, items, dedup, recent, dead =
    KEYS[12], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local besides = {'f', 'k', 'o'}
--#include checks
--#include queue_rules
--#include queue_bytes
--#include read_within
--#include queue_state
--#include queue_was
--#include queue_time
--#include queue_once
local settings = has[4]
--#include queue_settings
--#include queue_touch
--#include queue_entry
--#include queue_tell
--#include queue_tell_time
--#include queue_wait
--#include queue_keys
--#include queue_dead
--#include queue_return
--#include queue_judge
--#include queue_verdicts
--#include queue_take
local name, lane, mode, victim = string.match(ARGV[5], '^([^\n]*)\n([^\n]+)\n(%l+)\n([^\n]*)$')
if not (done and done >= 0 and #ARGV >= 6 + done and name) then return refuse('done: as many as follow, names') end
if sequence == known then return taken_before() end
local function measure(which, where)
    local length = call('LLEN', where)
    if length > 0 then call('ZADD', KEYS[11], length, which) else call('ZREM', KEYS[11], which) end
    return length
end
-- Lanes of workers that were killed while they waited stay in the hash, until there are more of them than of the others.
local function forget_the_dead()
    if call('HLEN', key) < 32 + 2 * call('ZCARD', KEYS[10]) then return end
    local fields = call('HGETALL', key)
    for i = 1, #fields, 2 do
        if string.byte(fields[i]) == 119 and not call('ZSCORE', KEYS[10], fields[i + 1]) and fields[i] ~= 'w' .. lane then call('HDEL', key, fields[i]) end
    end
end
finish()
judge()
touch()
local look, waits, next_victim, rest, takes = 1e15, 0, '', 0, want > 0 and not is_paused(was)
if takes then look = settle(held, items) end
local more = put_back()
if takes and victim ~= '' and victim ~= lane then
    -- The younger ones, from the other end than their worker takes.
    local n = mode == 'half' and math.min(math.ceil(call('LLEN', KEYS[13]) / 2), 1000) or 1
    local last_first = read_within(n, 1, function(from, count)  -- fewer: another thief may have been here
        local some, turned = call('LRANGE', KEYS[13], -from - count, -from - 1), {}
        for i = 1, #some do turned[i] = some[#some + 1 - i] end
        return turned
    end)
    local stolen = {}
    for i = #last_first, 1, -1 do stolen[#stolen + 1] = last_first[i] end
    if #stolen > 0 then
        call('LTRIM', KEYS[13], 0, -#stolen - 1)
        call('RPUSH', ready, unpack(stolen))
    end
    measure(victim, KEYS[13])
end
if takes then take(want, ahead) end
if want > 0 or more > 0 then rest = measure(lane, ready) end
if is_short() then
    -- The fullest lane; now and then, in 4 of 64 calls, any other: one whose worker has died may never be the fullest.
    local others = (sequence + math.floor(sequence / 64)) % 64 >= 60 and call('ZCARD', KEYS[11]) - 1 or 0
    local rank = others > 0 and 1 + us % others or 0
    next_victim = takes and call('ZREVRANGE', KEYS[11], rank, rank)[1] or ''
    if next_victim == '' and name ~= '' then
        waits = 1
        call('HSET', key, 'w' .. lane, name)
        forget_the_dead()
        look = wait_from_now(KEYS[10], name, math.min(look, soonest))
    end
end
if want > 0 and waits == 0 then call('HDEL', key, 'w' .. lane) end
if is_buried or (is_short() and want > 0 and #tokens == 0) then drop_letters() end
answer[1] = ARGV[2] .. ' ' .. server_text .. string.format(' %.0f %d,%d %s\n%s\n%s', math.max(look - now, 1), left and 2 or waits, dropped_letters, next_victim,
                          table.concat(lost, ' '), table.concat(tokens, ' '))
if forgot then limit_keys(dedup, recent) end
remember(answer[1])
if soonest < 1e15 then lower(soonest) end
if rest > 0 then tell(KEYS[10], 'r', 1) end
if waits == 0 and math.min(look, soonest) < 1e15 then tell_time(KEYS[10], math.min(look, soonest)) end
return answer[2] and answer or answer[1]
