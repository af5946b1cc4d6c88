--[[ rate_return: give back what was taken from a bucket last, if nobody has taken from it since.
  KEYS[1]  bucket  string, as in rate_bucket
  ARGV[1]  full_us  when it was going to be full, in µs after now_us
  ARGV[2]  now_us   both as rate_bucket said when it was taken
  ARGV[3]  ticks    by how much it was brought forward
  Returns  1 (given back) | 0 (others have taken since, and were told their times)
]]
local call = redis.call
local full, now, ticks = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local at = tonumber(call('GET', KEYS[1]) or '')
if not (full and now and ticks and at) then return 0 end
-- What was said was rounded up to a µs.
local was = (now + full - 1700000000000000) * 8
if at > was or at <= was - 8 then return 0 end
call('SET', KEYS[1], at - ticks, 'KEEPTTL')
return 1
