--[[ map_read: fields of a shared map, all at the same moment. Changes nothing.
  KEYS[1]  map     hash, as in map_change
  KEYS[2]  about   hash, as in map_change
  ARGV[1]  what    'all' | 'some' | 'version' | 'near'
  ARGV[2..]        for 'some': their names; for 'near': its name
  Returns  {version (0: nothing is known), 'field', '<version> <bytes>', ...}, for 'some' without those that are not there;
           for 'near' {version, for how many ms the map is there (below 0: for good), '<version> <bytes>' (if it is there)}
  Errors   LOCKSTEP_FORMAT
]]
local call, key, format = redis.call, KEYS[2], 'map 1'
local was = call('HMGET', key, 'v', 'n')
--#include state_hash
local answer = {tonumber(was[2] or 0)}
if ARGV[1] == 'all' then
    local all = call('HGETALL', KEYS[1])
    for i = 1, #all do answer[i + 1] = all[i] end
elseif ARGV[1] == 'some' then
    for i = 2, #ARGV do
        local text = call('HGET', KEYS[1], ARGV[i])
        if text then answer[#answer + 1], answer[#answer + 2] = ARGV[i], text end
    end
elseif ARGV[1] == 'near' then
    answer[2], answer[3] = call('PTTL', KEYS[1]), call('HGET', KEYS[1], ARGV[2]) or nil
end
return answer
