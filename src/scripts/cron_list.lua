--[[ cron_list: schedules of jobs, by the time when they are due next; those that are paused come last. Changes nothing.
  KEYS[1]  crons  sorted set
  KEYS[2]  specs  hash
  KEYS[3]  last   hash
  ARGV[1]  from   how many to pass over
  ARGV[2]  most   how many at most
  Returns  {id, due_ms, 0: it is paused, its spec, '<due_ms> <id of the job>' of its last run or ''} of each
]]
--#include cron_keys
local call, from, all = redis.call, tonumber(ARGV[1]), {}
local found = call('ZRANGE', crons, from, from + ARGV[2] - 1, 'WITHSCORES')
for i = 1, #found, 2 do
    local due, spec = tonumber(found[i + 1]), call('HGET', specs, found[i])
    if spec then all[#all + 1] = {found[i], due ~= math.huge and due or 0, spec, call('HGET', last, found[i]) or ''} end
end
return all
