--[[ rate_bucket: take from token buckets, from all of these or from none.
  KEYS[1..]  bucket    string: when it will be full again (the theoretical arrival time of GCRA), in ticks
  ARGV[1]    interval  ticks in which one unit comes back, an integer of at least 1
  ARGV[2]    burst     units that a full bucket has, an integer of at least 1
  ARGV[3]    ttl_ms    for how long it is kept: until it is full, at the latest
  ARGV[4]    cost      units to take from each, at most burst; absent: 1
  ARGV[5]    take      0: only look
  ARGV[6]    ahead     take units that come back within so many ticks, too: a reservation
  Returns  {taken (or could be) 1 | 0, now_us, then for each key: ticks until it is full}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
--#include rate_time
local interval, burst, cost, ahead = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[4] or 1), tonumber(ARGV[6] or 0)
local take, key = ARGV[5] ~= '0', KEYS[1]
if not (interval and burst and cost and ahead and interval >= 1 and cost >= 1 and cost <= burst and ahead <= 80000000) then
    return redis.error_reply('LOCKSTEP_ARGUMENT interval: at least 1, cost: 1 to burst, ahead: 0 to 80000000')
end
-- A tick is 1/8 µs, so that also 300,000 a second are met well; counted from 2023 on, so that such numbers stay exact.
local now, full, need = (us - 1700000000000000) * 8, interval * burst, interval * cost
-- Further away nobody can have brought it: what can be reserved is what it holds, or 10 s.
local furthest = now + full + (full < 80000000 and full or 80000000)

-- One key, nothing out of the ordinary: the same as below, for half the cost.
if not KEYS[2] then
    local at = tonumber(call('GET', key) or now)
    if at and at <= furthest then
        if at < now then at = now end
        if at + need - full - now > ahead then return {0, us, at - now} end
        if take then
            at = at + need
            call('PSETEX', key, ARGV[3], at)
        end
        return {1, us, at - now}
    end
end

local known, answer = call('MGET', unpack(KEYS)), {1, us}
for i = 1, #KEYS do
    local at = tonumber(known[i] or now)
    if not at then return redis.error_reply('LOCKSTEP_FORMAT this is no bucket') end
    at = at < now and now or at > furthest and furthest or at
    if at + need - full - now > ahead then answer[1] = 0 end
    answer[i + 2] = at - now
end
for i = 1, #KEYS do
    local takes = take and answer[1] == 1
    if takes then answer[i + 2] = answer[i + 2] + need end
    -- The server's clock was set back: it is empty and fills from now on.
    local is_back = take and tonumber(known[i] or now) > furthest
    if takes or is_back then call('PSETEX', KEYS[i], ARGV[3], now + answer[i + 2]) end
end
return answer
