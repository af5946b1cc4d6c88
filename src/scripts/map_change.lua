--[[ map_change: set and erase fields of a shared map, all or none.
  KEYS[1]  map          hash: each field as '<version> <bytes>'
  KEYS[2]  about        hash: v format, n the largest version, f the largest fence; and what once.lua keeps. It outlives the map.
  ARGV[1]  session      as in broadcast_set
  ARGV[2]  sequence     as in broadcast_set
  ARGV[3]  deadline_ms  the server's time after which this must not run any more
  ARGV[4]  rules        '<retention ms> <PUBLISH or SPUBLISH>': who watches hears, on the channel KEYS[1], '<version> =<field's length> <field><bytes>',
                        '<version> -<field's length> <field>' (erased), '<version> ?<field's length> <field>...' (more than 16, or too large: look
                        at these) or '<version> ?' (cleared, or gone because its ttl had run out: look at all)
  ARGV[5]  ttl_ms       the map is gone when it was not changed for so long; 0: it stays
  ARGV[6]  fence        0: none. Refused if a larger one was seen; the largest is kept
  ARGV[7]  what         'clear' (all fields) | 'change' (those that follow)
  ARGV[8..]             for each field: 'set' or 'erase', its name, the version expected ('': any, 0: none), its bytes ('' for 'erase')
  Returns  {'changed', version, now_ms, how many fields were there before} (sent again: the same; erase of nothing, without a fence, changes
           nothing) | {'conflict', its version or 0, now_ms} | {'stale', fence, now_ms} | {'late', 0, now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local map, key, format, session, rules = KEYS[1], KEYS[2], 'map 1', ARGV[1], ARGV[4]
--#include checks
--#include state_rules
--#include server_time
local ttl, fence, what = whole(ARGV[5], 0, 1e12), whole(ARGV[6], 0, 9e15), ARGV[7]
if not (ttl and fence and (what == 'clear' or what == 'change') and (#ARGV - 7) % 4 == 0) then
    return refuse('ttl_ms: 0 to 10^12, fence: 0 to 9*10^15, what: clear, or change and four words for each field')
end
local was = call('HMGET', key, 'v', 'n', 'f', 'a' .. session, 'rf', 'rl', 'rt')
--#include state_hash
local set, del = {}, {}
--#include once
--#include state_write
if has_counted(was[4]) then
    local version, before = string.match(answer_of(was[4]), '^(%d+) (%d+)$')
    return {'changed', tonumber(version), now, tonumber(before)}
end
if now > deadline then return {'late', 0, now} end
local last, seen = tonumber(was[2] or 0), tonumber(was[3] or 0)
if fence > 0 and fence < seen then return {'stale', seen, now} end
local before, sets, fields = 0, {}, {}
for i = 8, #ARGV, 4 do
    local text = call('HGET', map, ARGV[i + 1])
    local version = text and tonumber(string.match(text, '^%d+')) or 0
    if ARGV[i + 2] ~= '' and whole(ARGV[i + 2], 0, 9e15) ~= version then return {'conflict', version, now} end
    if text then before = before + 1 end
    if ARGV[i] == 'set' then sets[#sets + 1] = i elseif text then fields[#fields + 1] = ARGV[i + 1] end
end
if what == 'clear' then before = call('HLEN', map) end
local is_gone = ttl > 0 and last > 0 and call('EXISTS', map) == 0
if #sets == 0 and before == 0 and fence == 0 then return {'changed', last, now, 0} end
local version = math.max(last + 1, us)
local number = string.format('%.0f', version)
set = {'v', format, 'n', number}
if fence > 0 then set[#set + 1], set[#set + 2] = 'f', string.format('%.0f', fence) end
remember(was[4], was[5], was[6], was[7], number .. ' ' .. before)
write(ttl > 0 and ttl + retention)
for _, i in ipairs(sets) do call('HSET', map, ARGV[i + 1], number .. ' ' .. ARGV[i + 3]) end
for _, field in ipairs(fields) do call('HDEL', map, field) end
if what == 'clear' then call('DEL', map) end
if ttl > 0 then call('PEXPIRE', map, string.format('%.0f', ttl)) else call('PERSIST', map) end
-- An empty map is kept in mind for its versions and its fence only.
if ttl == 0 and call('EXISTS', map) == 0 then call('PEXPIRE', key, string.format('%.0f', retention)) end
local names, many = '', #sets + #fields > 16
local function tell(news) redis.pcall(publish, map, number .. ' ' .. news) end
local function tell_field(sign, field, bytes)
    local name = #field .. ' ' .. field
    if not many and #name + #bytes <= 16384 then return tell(sign .. name .. bytes) end
    if #names + #name > 16384 and names ~= '' then
        tell('?' .. names)
        names = ''
    end
    names = names .. name
end
if what == 'clear' or is_gone then tell('?') end
for _, i in ipairs(sets) do tell_field('=', ARGV[i + 1], ARGV[i + 3]) end
for _, field in ipairs(fields) do tell_field('-', field, '') end
if names ~= '' then tell('?' .. names) end
return {'changed', version, now, before}
