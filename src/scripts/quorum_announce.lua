--[[ quorum_announce: write down on one node who leads an election over several, unless a later leader did.
  KEYS[1]  leader  string, '<term> <since_ms> <state> <token> <who>'
  ARGV[1]  term    an integer below 2^53
  ARGV[2]  record  the whole of it
  ARGV[3]  ttl_ms  how long it is kept without being written again
  Returns  1 (written) | 0 (a later one is there)
]]
local known = tonumber(string.match(redis.call('GET', KEYS[1]) or '', '^%d+') or 0)
if known > tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1
