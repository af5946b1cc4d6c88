--[[ session_destroy: end sessions of a user, or (keep) look which of them are there and forget the others.
  KEYS[1]  index        of the user, as in session_create
  KEYS[2..]             the sessions, hashes
  ARGV[1]  deadline_ms  destroy: the server's time after which this must not run any more
  ARGV[2]  what         'destroy' | 'keep'
  ARGV[3..]             their handles, in the same order
  Returns  {'found', 0, now_ms, handles of those that were there, ...} | {'late', 0, now_ms}
  Errors   LOCKSTEP_ARGUMENT (nothing was written)
]]
local call, deadline = redis.call, tonumber(ARGV[1])
--#include server_time
if not deadline then return redis.error_reply('LOCKSTEP_ARGUMENT deadline_ms: a time') end
if ARGV[2] == 'destroy' and now > deadline then return {'late', 0, now} end
local found = {'found', 0, now}
for i = 3, #ARGV do
    local session = KEYS[i - 1]
    if call('EXISTS', session) == 1 then found[#found + 1] = ARGV[i] end
    if ARGV[2] == 'destroy' then call('DEL', session) end
    if ARGV[2] == 'destroy' or found[#found] ~= ARGV[i] then call('ZREM', KEYS[1], ARGV[i]) end
end
return found
