--[[ session_create: begin a session, of a user or of nobody. The same handle again changes nothing.
  KEYS[1]  session      hash: v format, u user ('': nobody), c begun at, e ends at the latest, t ttl in ms, n version, w ids of the latest writes; f<field> each field
  KEYS[2]  index        sorted set: handles of the user's sessions by when they end at the latest; none: of nobody
  ARGV[1]  deadline_ms  the server's time after which this must not run any more
  ARGV[2]  handle       a hash of its id, which the server does not know (src/state/session_ids.hpp)
  ARGV[3]  user
  ARGV[4]  ttl_ms       it ends when it was not used for so long
  ARGV[5]  lifetime_ms  and after this in any case
  ARGV[6..]             fields and values
  Returns  {'created', how many handles the index has; some of them may be of sessions that have ended, now_ms} | {'late', 0, now_ms}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
local call, format = redis.call, 'session 1'
--#include server_time
local deadline, ttl, lifetime = tonumber(ARGV[1]), tonumber(ARGV[4]), tonumber(ARGV[5])
if not (deadline and ttl and lifetime and ttl >= 1 and lifetime >= 1 and #ARGV % 2 == 1) then
    return redis.error_reply('LOCKSTEP_ARGUMENT deadline_ms: a time, ttl_ms, lifetime_ms: at least 1; fields and values')
end
local function created() return {'created', KEYS[2] and call('ZCARD', KEYS[2]) or 0, now} end
if call('EXISTS', KEYS[1]) == 1 then return created() end
if now > deadline then return {'late', 0, now} end
local ends = string.format('%.0f', now + lifetime)
call('HSET', KEYS[1], 'v', format, 'u', ARGV[3], 'c', string.format('%.0f', now), 'e', ends, 't', ARGV[4], 'n', string.format('%.0f', us), 'w', '')
for i = 6, #ARGV, 2 do call('HSET', KEYS[1], 'f' .. ARGV[i], ARGV[i + 1]) end
call('PEXPIRE', KEYS[1], string.format('%.0f', math.min(ttl, lifetime)))
if KEYS[2] then
    call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now))
    call('ZADD', KEYS[2], ends, ARGV[2])
    if call('PTTL', KEYS[2]) < lifetime then call('PEXPIRE', KEYS[2], string.format('%.0f', lifetime)) end
end
return created()
