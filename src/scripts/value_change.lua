--[[ value_change: set or erase a shared value, if it is as expected and no larger fence was seen.
  KEYS[1]  value        hash: v format, n the largest version, d the bytes (none: no value), e when they end in ms (none: never), f the
                        largest fence; and what once.lua keeps. It outlives its value: by the retention if it was erased or has a fence,
                        otherwise by two minutes.
  ARGV[1]  session      as in broadcast_set
  ARGV[2]  sequence     as in broadcast_set
  ARGV[3]  deadline_ms  the server's time after which this must not run any more
  ARGV[4]  rules        '<retention ms, two minutes at least> <PUBLISH or SPUBLISH>': who watches hears, on the channel KEYS[1], '<version> =<bytes>', '<version> -'
                        (erased) or '<version> ?' (too large: look)
  ARGV[5]  what         'set' | 'erase'
  ARGV[6]  bytes        of the value
  ARGV[7]  ttl_ms       how long it is there, 0: for good
  ARGV[8]  expected     its version; 0: there is none; '': any
  ARGV[9]  fence        0: none. Refused if a larger one was seen; the largest is kept
  Returns  {'changed', version, now_ms, 1 (there was a value before) or 0} (sent again: the same; erase of nothing, without a fence, changes nothing) | {'conflict', version or 0, now_ms} | {'stale', fence, now_ms} | {'late', 0, now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local key, format, session, rules = KEYS[1], 'value 1', ARGV[1], ARGV[4]
--#include checks
--#include state_rules
--#include server_time
local ttl, fence, expected = whole(ARGV[7], 0, 1e12), whole(ARGV[9], 0, 9e15), ARGV[8] ~= '' and whole(ARGV[8], 0, 9e15)
local is_set = ARGV[5] == 'set'
if not (ttl and fence and (expected or ARGV[8] == '') and (is_set or ARGV[5] == 'erase')) then
    return refuse('what: set or erase, ttl_ms: 0 to 10^12, expected and fence: 0 to 9*10^15')
end
local was = call('HMGET', key, 'v', 'n', 'e', 'f', 'a' .. session, 'rf', 'rl', 'rt')
--#include state_hash
local set, del = {}, {}
--#include once
--#include state_write
if has_counted(was[5]) then
    local version, before = string.match(answer_of(was[5]), '^(%d+) (%d)$')
    return {'changed', tonumber(version), now, tonumber(before)}
end
if now > deadline then return {'late', 0, now} end
local last, seen = tonumber(was[2] or 0), tonumber(was[4] or 0)
if fence > 0 and fence < seen then return {'stale', seen, now} end
local there = call('HEXISTS', key, 'd') == 1 and not (was[3] and tonumber(was[3]) <= now)
if expected and expected ~= (there and last or 0) then return {'conflict', there and last or 0, now} end
if not (is_set or there or fence > 0) then return {'changed', last, now, 0} end
-- Also the time, so that it grows after the hash was gone or another server took over.
local version = math.max(last + 1, us)
local number = string.format('%.0f', version)
set = {'v', format, 'n', number}
if fence > 0 then set[#set + 1], set[#set + 2] = 'f', string.format('%.0f', fence) end
if is_set then
    set[#set + 1], set[#set + 2] = 'd', ARGV[6]
else
    del[#del + 1] = 'd'
end
if is_set and ttl > 0 then
    set[#set + 1], set[#set + 2] = 'e', string.format('%.0f', now + ttl)
elseif was[3] then
    del[#del + 1] = 'e'
end
remember(was[5], was[6], was[7], was[8], number .. (there and ' 1' or ' 0'))
-- Bytes can't go before the hash does: with a ttl they stay for long only where there is a fence to remember.
local for_long = not is_set or fence > 0 or was[4]
write((not is_set or ttl > 0) and (is_set and ttl or 0) + (for_long and retention or memory))
local news = not is_set and ' -' or #ARGV[6] <= 16384 and ' =' .. ARGV[6] or ' ?'
redis.pcall(publish, key, number .. news)
return {'changed', version, now, there and 1 or 0}
