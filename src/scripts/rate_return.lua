--[[ rate_return: give back what was taken from a bucket last, if nobody has taken from it since.
  KEYS[1]  bucket  string, as in rate_bucket
  ARGV[1]  at      what it was brought to, in ticks, by rate_bucket
  ARGV[2]  ticks   by how much
  Returns  1 (given back) | 0 (others have taken since, and were told their times)
]]
local at = tonumber(redis.call('GET', KEYS[1]) or '')
local ticks = tonumber(ARGV[2])
if not (at and ticks) or at ~= tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], at - ticks, 'KEEPTTL')
return 1
