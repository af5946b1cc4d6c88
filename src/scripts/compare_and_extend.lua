--[[ compare_and_extend: keep some keys for longer if all of them still hold the value that was put there.
  KEYS[1..]  the keys, strings
  ARGV[1]    expected  the value they must hold
  ARGV[2]    ttl_ms    how long from now, an integer of at least 1
  ARGV[3]    again     '1': one that does not exist is made again | '0'
  Returns    1 (extended) | 2 (extended, and something was made again) | 0 (one holds another value, or does not exist)
]]
local missing = {}
for i = 1, #KEYS do
    local value = redis.pcall('GET', KEYS[i])
    if value and value ~= ARGV[1] then return 0 end
    if not value then missing[#missing + 1] = KEYS[i] end
end
if #missing > 0 and ARGV[3] ~= '1' then return 0 end
for _, key in ipairs(missing) do redis.call('SET', key, ARGV[1], 'PX', ARGV[2]) end  -- first: without memory it fails
for i = 1, #KEYS do redis.call('PEXPIRE', KEYS[i], ARGV[2]) end
return #missing > 0 and 2 or 1
