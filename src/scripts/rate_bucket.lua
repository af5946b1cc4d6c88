--[[ rate_bucket: take from token buckets.
  KEYS[1..]  bucket    string: when it will be full again (the theoretical arrival time of GCRA), in ticks
  ARGV[1]    interval  ticks in which one unit comes back, an integer of at least 1
  ARGV[2]    burst     units that a full bucket has, an integer of at least 1
  ARGV[3]    ttl_ms    for how long it is kept: until it is full, at the latest
  ARGV[4]    cost      units to take from each, at most burst; absent: 1
  ARGV[5]    how       each: from each that has them, a key may come twice; absent: so | all: from all or from none | look: take nothing
  ARGV[6]    ahead     take units that come back within so many ticks, too: a reservation
  Returns  {all have them 1 | 0, now_us, then for each key: ticks until it is full again with this cost, taken or not; or an error}
           A bucket has them if that is at most interval * burst + ahead.
  Errors   LOCKSTEP_ARGUMENT, of a key LOCKSTEP_FORMAT, WRONGTYPE (nothing was written; each: nothing to this key)
]]
--#include rate_time
local interval, burst, cost, ahead = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[4] or 1), tonumber(ARGV[6] or 0)
if not (interval and burst and cost and ahead and interval >= 1 and cost >= 1 and cost <= burst and ahead <= 80000000) then
    return redis.error_reply('LOCKSTEP_ARGUMENT interval: at least 1, cost: 1 to burst, ahead: 0 to 80000000')
end
local is_each, take, ttl_ms = ARGV[5] == 'each' or not ARGV[5], ARGV[5] ~= 'look', ARGV[3]
-- A tick is 1/8 µs, so that also 300,000 a second are met well; counted from 2023 on, so that such numbers stay exact.
local now, full, need = (us - 1700000000000000) * 8, interval * burst, interval * cost
-- Further away nobody can have brought it: what can be reserved is what it holds, or 10 s.
local furthest = now + full + (full < 80000000 and full or 80000000)

local answers, backs = {1, us}, {}
for i = 1, #KEYS do
    local key = KEYS[i]
    local text = try('GET', key)
    local at = not text and now or type(text) == 'string' and tonumber(text)
    if at then
        -- The server's clock was set back: it is empty and fills from now on.
        local is_back = at > furthest
        at = at < now and now or is_back and furthest or at
        local fits = at + need - now <= full + ahead
        if not fits then answers[1] = 0 end
        if is_each and (fits or is_back) then call('PSETEX', key, ttl_ms, fits and at + need or at) end
        answers[i + 2], backs[i] = at + need - now, is_back
    else
        answers[i + 2] = text.err and text or redis.error_reply('LOCKSTEP_FORMAT this is no bucket')
        if not is_each then return answers[i + 2] end
    end
end
if take and not is_each then
    for i, key in ipairs(KEYS) do
        if answers[1] == 1 or backs[i] then call('PSETEX', key, ttl_ms, now + answers[i + 2] - (answers[1] == 1 and 0 or need)) end
    end
end
return answers
