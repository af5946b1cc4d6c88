--[[ index_tend: what index_note returned was looked for: objects whose keys are gone leave the index.
  KEYS[1]  index  sorted set, as in index_note
  ARGV[1]  left   until when these are left to the caller, as index_note said
  ARGV[2]  look_ms  the least after which somebody looks again
  ARGV[3..]       pairs: an object, and the PTTL of its key
  Returns  how many left the index
]]
local call, key, longest = redis.call, KEYS[1], 3600000
--#include server_time
local gone, keep = 0, 0
for i = 3, #ARGV, 2 do
    local member, span = ARGV[i], tonumber(ARGV[i + 1])
    if span == -2 then
        -- If it has another time now, somebody has used it since.
        if tonumber(call('ZSCORE', key, member) or 0) == tonumber(ARGV[1]) then gone = gone + call('ZREM', key, member) end
    else
        local again = span == -1 and longest or math.max(math.min(span, longest), tonumber(ARGV[2]))
        call('ZADD', key, 'XX', 'GT', string.format('%.0f', now + again), member)
        keep = math.max(keep, span == -1 and 31622400000 or span + longest)
    end
end
if keep > 0 and call('PTTL', key) < keep then call('PEXPIRE', key, string.format('%.0f', keep)) end
return gone
