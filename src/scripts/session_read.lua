--[[ session_read: a session, or one field of it. But for a peek it was used, and so its ttl begins anew.
  KEYS[1]  session  hash, as in session_create
  ARGV[1]  what     'all' | 'peek' (all, and it is not used) | 'field' | 'touch'
  ARGV[2]  field
  Returns  {} (there is none) | {version, user, begun_ms, ends_ms, 'field', 'value', ...}
  Errors   LOCKSTEP_FORMAT
]]
local call, key, format = redis.call, KEYS[1], 'session 1'
local was = call('HMGET', key, 'v', 'n', 'u', 'c', 'e', 't', 'f' .. ARGV[2])
--#include state_hash
if not was[1] then return {} end
--#include server_time
local function renew()
--#include session_renew
end
if ARGV[1] == 'peek' and was[5] - now <= 0 or ARGV[1] ~= 'peek' and renew() then return {} end
local answer = {tonumber(was[2]), was[3], tonumber(was[4]), tonumber(was[5])}
if ARGV[1] == 'all' or ARGV[1] == 'peek' then
    local all = call('HGETALL', key)
    for i = 1, #all, 2 do
        if string.sub(all[i], 1, 1) == 'f' then answer[#answer + 1], answer[#answer + 2] = string.sub(all[i], 2), all[i + 1] end
    end
elseif ARGV[1] == 'field' and was[7] then
    answer[5], answer[6] = ARGV[2], was[7]
end
return answer
