--[[ counter_change: add to a counter, or set it, once.
  KEYS[1]  counter      hash: v format, n the number, e when it ends in ms (none: never); and what once.lua keeps. It outlives a short ttl, for that.
  ARGV[1]  session      as in broadcast_set
  ARGV[2]  sequence     as in broadcast_set
  ARGV[3]  deadline_ms  the server's time after which this must not run any more
  ARGV[4]  rules        as in value_change; the retention is how long it stays at least, for the calls that are sent again
  ARGV[5]  what         'add' | 'set' | 'exchange' (set it if it is as expected)
  ARGV[6]  number       a signed 64-bit integer
  ARGV[7]  expected     likewise, as 'exchange' expects it; 0 if there is no counter
  ARGV[8]  ttl_ms       0: it stays for good; else it is gone when it was not changed for so long
  Returns  {'changed', 0, now_ms, before, after} (sent again: the same) | {'differs', 0, now_ms, before} | {'late', 0, now_ms}; numbers as text
  Errors   LOCKSTEP_ARGUMENT (also: it would overflow), LOCKSTEP_FORMAT (nothing was written)
]]
local key, format, session, rules = KEYS[1], 'counter 1', ARGV[1], ARGV[4]
--#include checks
--#include state_rules
--#include server_time
local what, number, ttl = ARGV[5], ARGV[6], whole(ARGV[8], 0, 1e12)
if not (ttl and string.find(number, '^-?%d+$') and string.find(ARGV[7], '^-?%d+$')) then return refuse('number, expected: integers, ttl_ms: 0 to 10^12') end
if what ~= 'add' and what ~= 'set' and what ~= 'exchange' then return refuse('what: add, set or exchange') end
local was = call('HMGET', key, 'v', 'n', 'a' .. session, 'rf', 'rl', 'rt', 'e')
--#include state_hash
local ended = was[7] and tonumber(was[7]) <= now
local set, del, before = {}, {}, not ended and was[2] or '0'
--#include once
--#include state_write
if has_counted(was[3]) then
    local first, second = string.match(answer_of(was[3]), '^(%S+) (%S+)$')
    return {'changed', 0, now, first, second}
end
if now > deadline then return {'late', 0, now} end
-- As texts: Lua's numbers have 53 bits.
if what == 'exchange' and before ~= ARGV[7] then return {'differs', 0, now, before} end
local after = number
if what == 'add' and not ended then
    -- Redis knows when 64 bits are not enough, and then writes nothing. It may refuse for other reasons too, out of memory or read-only.
    local added = redis.pcall('HINCRBY', key, 'n', number)
    if type(added) == 'table' and added.err then
        if not string.find(added.err, 'overflow', 1, true) then return added end
        return refuse(before .. ' plus ' .. number .. ' does not fit into 64 bits')
    end
    after = call('HGET', key, 'n')
end
set = {'v', format, 'n', after}
if ttl > 0 then
    set[5], set[6] = 'e', string.format('%.0f', now + ttl)
elseif was[7] then
    del[1] = 'e'
end
remember(was[3], was[4], was[5], was[6], before .. ' ' .. after)
write(ttl > 0 and math.max(ttl, retention))
return {'changed', 0, now, before, after}
