--[[ job_list: ids of jobs of one type that are in a state. Changes nothing.
  KEYS[1]  queue   hash: the queue of the type
  KEYS[2]  ready   list
  KEYS[3]  ranked  sorted set
  KEYS[4]  later   sorted set
  KEYS[5]  held    sorted set
  KEYS[6]  absent  never there (include/job_rules.lua)
  ARGV[1]  state   waiting, delayed, blocked, running, completed, failed or cancelled; or tag:<tag>, in any state
  ARGV[2]  from    how many to pass over
  ARGV[3]  most    how many at most
  Returns  {how many there are, id...}; the youngest first where they have ended or have that tag, else in the order in which they will be run. A job that was
           cancelled or put off since may still be among them. Of those that are delayed each is followed by the time, ms, when
           it is due
]]
local call, key, held, _ = redis.call, KEYS[1], KEYS[5], KEYS[6]
--#include server_time
--#include queue_state
--#include queue_now
--#include job_rules
local state, from, most, found = ARGV[1], ARGV[2] + 0, ARGV[3] + 0, {0}
local longest = 256  -- bytes: what is longer is no id of ours
local function add(entries)
    for _, entry in ipairs(entries) do
        local id, delivery = string.match(string.sub(entry, 1, longest), '(%d+%-%d+%a*)[ .](%d+)')
        if state ~= 'running' or string.match(call('HGET', part('running'), id) or '', '^%d+') == delivery then found[#found + 1] = id end
    end
end
local function add_id(id)
    if #id <= longest then found[#found + 1] = id end
end
if state == 'waiting' then
    local high, low = call('ZCOUNT', KEYS[3], '-inf', '(0'), call('ZCARD', KEYS[3])
    local plain = call('LLEN', KEYS[2])
    found[1] = low + plain
    local function some(of, where, pass)
        local left = most - (#found - 1)
        local first = math.max(from - pass, 0)
        if left > 0 and first < of then add(call(where[1], where[2], where[3] + first, math.min(where[3] + first + left, where[3] + of) - 1)) end
    end
    some(high, {'ZRANGE', KEYS[3], 0}, 0)
    some(plain, {'LRANGE', KEYS[2], 0}, high)
    some(low - high, {'ZRANGE', KEYS[3], high}, high + plain)
elseif state == 'delayed' then
    found[1] = call('ZCARD', KEYS[4])
    local entries = call('ZRANGE', KEYS[4], from, from + most - 1, 'WITHSCORES')
    for i = 1, #entries, 2 do
        local before = #found
        add({entries[i]})
        if #found > before then found[#found + 1] = math.floor(entries[i + 1] - was[6]) end  -- by the server's clock
    end
elseif state == 'running' then
    found[1] = call('ZCARD', held)
    add(call('ZRANGE', held, from, from + most - 1))
elseif state == 'blocked' then
    found[1] = call('ZCARD', part(state))
    for _, id in ipairs(call('ZRANGE', part(state), from, from + most - 1)) do add_id(id) end
elseif state == 'completed' or state == 'failed' or state == 'cancelled' or string.find(state, '^tag:') then
    found[1] = call('ZCARD', part(state))
    local ids = from < found[1] and call('ZRANGE', part(state), math.max(found[1] - from - most, 0), found[1] - from - 1) or {}
    for i = #ids, 1, -1 do add_id(ids[i]) end
else
    return redis.error_reply('LOCKSTEP_ARGUMENT state: waiting, delayed, blocked, running, completed, failed or cancelled')
end
return found
