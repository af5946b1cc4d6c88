--[[ cron_change: drop a schedule of jobs, pause it, or have it go on. The same again changes nothing more.
  KEYS[1]  crons    sorted set
  KEYS[2]  specs    hash
  KEYS[3]  last     hash
  ARGV[1]  tell     as in cron_put
  ARGV[2]  id
  ARGV[3]  what     drop, pause or resume
  ARGV[4]  version  of what is to go on; else not used
  ARGV[5]  next     when that is due, ms; else not used
  Returns  1 | 0 (there is none; or resume: it is not paused, or was replaced meanwhile)
  Errors   LOCKSTEP_ARGUMENT (nothing was written)
]]
--#include checks
--#include cron_keys
local call = redis.call
local publish, channel = string.match(ARGV[1], '^(S?PUBLISH) (.+)$')
local id, what, following = ARGV[2], ARGV[3], whole(ARGV[5], 0, 1e15)
if not (publish and following and (what == 'drop' or what == 'pause' or what == 'resume')) then
    return refuse('tell: PUBLISH|SPUBLISH <channel>, what: drop, pause or resume, next: ms')
end
local spec, score = call('HGET', specs, id), call('ZSCORE', crons, id)
if not (spec and score) then return 0 end
if what == 'drop' then
    call('ZREM', crons, id)
    call('HDEL', specs, id)
    call('HDEL', last, id)
elseif what == 'pause' then
    call('ZADD', crons, 'inf', id)
else
    if tonumber(score) ~= math.huge or string.match(spec, '^%d+') ~= ARGV[4] then return 0 end
    call('ZADD', crons, ARGV[5], id)
end
redis.pcall(publish, channel, '')
return 1
