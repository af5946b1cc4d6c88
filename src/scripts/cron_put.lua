--[[ cron_put: keep a schedule of jobs. One that is there already is replaced: it stays paused if it is, and if its times are the same it keeps the one
  when it is due next, so that a program which puts its schedules at each start misses nothing.
  KEYS[1]  crons  sorted set
  KEYS[2]  specs  hash
  KEYS[3]  last   hash
  ARGV[1]  tell   'PUBLISH|SPUBLISH <channel>' of those who fire schedules
  ARGV[2]  id
  ARGV[3]  next   when it is due, ms
  ARGV[4]  spec   without its version
  Returns  {when it is due next, ms; 0: it is paused, 1 if it is new}
  Errors   LOCKSTEP_ARGUMENT (nothing was written)
]]
--#include checks
--#include cron_keys
local call = redis.call
--#include server_time
local publish, channel = string.match(ARGV[1], '^(S?PUBLISH) (.+)$')
local timing = string.match(ARGV[4], '^[^\n]- (%S+\t[^\n]*)\n')
if not (publish and timing and whole(ARGV[3], 1, 1e15)) then return refuse('tell: PUBLISH|SPUBLISH <channel>, next: ms, spec: as in cron_keys') end
local was, score = call('HGET', specs, ARGV[2]), tonumber(call('ZSCORE', crons, ARGV[2]) or nil)
local version, due = us, ARGV[3]
if was and score then
    version = math.max(us, string.match(was, '^%d+') + 1)
    if score == math.huge then due = 'inf'
    elseif string.match(was, '^[^\n]- (%S+\t[^\n]*)\n') == timing then due = string.format('%.0f', score) end
end
call('HSET', specs, ARGV[2], string.format('%.0f ', version) .. ARGV[4])
call('ZADD', crons, due, ARGV[2])
redis.pcall(publish, channel, '')
return {due == 'inf' and 0 or tonumber(due), was and 0 or 1}
