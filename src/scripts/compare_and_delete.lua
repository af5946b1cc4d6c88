--[[ compare_and_delete: delete a key if it still holds the value that was put there.
  KEYS[1]  key       string
  ARGV[1]  expected  the value it must hold
  Returns  1 (deleted) | 0 (another value, or no such key)
]]
if redis.call('GET', KEYS[1]) == ARGV[1] then
    return redis.call('DEL', KEYS[1])
end
return 0
