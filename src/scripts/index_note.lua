--[[ index_note: note which objects were used, so that monitors find them without looking through all keys. Nothing depends on it.
  KEYS[1]  index    sorted set: '{<name>}:<rest of its key>' by when it is to be looked after, in ms; what has no key of its own ends then
  ARGV[1]  keep_ms  how long the index is kept at least
  ARGV[2]  look_ms  after so long somebody looks whether the object is still there
  ARGV[3]  most     how many are returned, of those whose time has come
  ARGV[4..]         pairs: an object, and 0 or for how many ms it is listed because it has no key of its own
  Returns  {until when these are left to the caller, then those whose keys are to be looked for and told to index_tend}
]]
local call, key = redis.call, KEYS[1]
--#include server_time
local noted = {}
for i = 4, #ARGV, 2 do
    local span = tonumber(ARGV[i + 1])
    noted[#noted + 1], noted[#noted + 2] = string.format('%.0f', now + (span > 0 and span or ARGV[2])), ARGV[i]
end
if #noted > 0 then call('ZADD', key, 'GT', unpack(noted)) end
local keep = tonumber(ARGV[1])
if call('PTTL', key) < keep and #noted > 0 then call('PEXPIRE', key, keep) end

-- Each is given to one caller. If that one ends before it has told what it found, the next one gets it a minute later.
local left_until = now + 60000
local found = {left_until}
for _, member in ipairs(call('ZRANGE', key, '-inf', string.format('(%.0f', now), 'BYSCORE', 'LIMIT', 0, ARGV[3])) do
    if string.find(member, '}:sessions', -10, true) or string.find(member, '}:limiter', -9, true) then
        call('ZREM', key, member)
    else
        call('ZADD', key, string.format('%.0f', left_until), member)
        found[#found + 1] = member
    end
end
return found
