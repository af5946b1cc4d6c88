--[[ once_claim: of all who ask within a window the first is the one who runs it. The same token again gets the same answer.
  KEYS[1]  slot       string
  ARGV[1]  token      of whoever asks
  ARGV[2]  window_ms  how long nobody else is the one, an integer of at least 1
  Returns  1 (run it) | 0 (somebody else did, or does)
]]
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
return redis.call('GET', KEYS[1]) == ARGV[1] and 1 or 0
