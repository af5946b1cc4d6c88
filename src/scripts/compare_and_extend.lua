--[[ compare_and_extend: keep some keys for longer if all of them still hold the value that was put there.
  KEYS[1..]  the keys, strings; with a fence twice as many: behind them, in the same order, the key of each one's fence
  ARGV[1]    expected  the value they must hold
  ARGV[2]    ttl_ms    how long from now, an integer of at least 1
  ARGV[3]    again     '1': one that does not exist is made again | '0'
  ARGV[4]    fence     of who holds them, an integer below 2^53, with fences: nothing is made again where a larger one is known | ''
  Returns    1 (extended) | 2 (extended, and something was made again) | 0 (one holds another value, or a larger fence is known)
             | -1 (one does not exist, and none holds another value)
]]
local count = ARGV[4] ~= '' and #KEYS / 2 or #KEYS
local missing, behind = {}, {}
for i = 1, count do
    local value = redis.pcall('GET', KEYS[i])
    if value and value ~= ARGV[1] then return 0 end
    if not value then missing[#missing + 1] = KEYS[i] end
end
if #missing > 0 and ARGV[3] ~= '1' then return -1 end
for i = count + 1, #missing > 0 and #KEYS or 0 do
    local known = tonumber(redis.call('GET', KEYS[i]) or '0') or 0
    if known > tonumber(ARGV[4]) then return 0 end
    if known < tonumber(ARGV[4]) then behind[#behind + 1] = KEYS[i] end
end
for _, key in ipairs(behind) do redis.call('SET', key, ARGV[4]) end
for _, key in ipairs(missing) do redis.call('SET', key, ARGV[1], 'PX', ARGV[2]) end  -- before: without memory it fails
for i = 1, count do redis.call('PEXPIRE', KEYS[i], ARGV[2]) end
return #missing > 0 and 2 or 1
