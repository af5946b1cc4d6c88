--[[ rate_bucket: take from token buckets, from all of these or from none.
  KEYS[1..]  bucket    string: when it will be full again (the theoretical arrival time of GCRA), in ticks
  ARGV[1]    cost      units to take from each, an integer of at least 1 and at most burst
  ARGV[2]    take      1: take them | 0: only look
  ARGV[3]    interval  ticks in which one unit comes back, an integer of at least 1
  ARGV[4]    burst     units that a full bucket has, an integer of at least 1
  ARGV[5]    ahead     take units that come back within so many ticks, too: a reservation
  ARGV[6]    furthest  the largest `ahead` that anybody uses
  Returns  {taken 1 | 0, now_us, then for each key: units left, us until `cost` is (or was) there, us until it is full}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
--#include rate_arguments
local cost, take, interval, burst = whole(ARGV[1], 1, 1e9), whole(ARGV[2], 0, 1), whole(ARGV[3], 1, 1e15), whole(ARGV[4], 1, 1e9)
local ahead, furthest = whole(ARGV[5], 0, 1e15), whole(ARGV[6], 0, 1e15)
if not (cost and take and interval and burst and ahead and furthest and cost <= burst) then
    return redis.error_reply('LOCKSTEP_ARGUMENT cost and burst: 1 to 10^9, interval, ahead, furthest: ticks')
end
-- A tick is 1/8 µs, so that also 300,000 a second are met well; counted from 2023 on, so that such numbers stay exact.
local now, full, need = (us - 1700000000000000) * 8, interval * burst, interval * cost
local count = #KEYS
local known = count == 1 and {call('GET', KEYS[1])} or call('MGET', unpack(KEYS))
local at, is_back, taken = {}, {}, 1
for i = 1, count do
    local one = known[i] and tonumber(known[i]) or now
    if known[i] and not tonumber(known[i]) then return redis.error_reply('LOCKSTEP_FORMAT this is no bucket') end
    -- Further away than anybody can have brought it: the server's clock was set back. It is empty and fills from now on.
    if one > now + full + furthest then one, is_back[i] = now + full + furthest, true end
    if one < now then one = now end
    at[i] = one
    if one + need - full - now > ahead then taken = 0 end
end
local answer = {taken, us}
for i = 1, count do
    local wait = at[i] + need - full - now
    local takes = taken == 1 and take == 1
    if takes then at[i] = at[i] + need end
    if takes or (is_back[i] and take == 1) then call('SET', KEYS[i], at[i], 'PX', math.ceil((at[i] - now) / 8000) + 1) end
    local left = math.floor((full - (at[i] - now)) / interval)
    local n = #answer
    answer[n + 1], answer[n + 2], answer[n + 3] = left > 0 and left or 0, wait > 0 and math.ceil(wait / 8) or 0, math.ceil((at[i] - now) / 8)
end
return answer
