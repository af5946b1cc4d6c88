--[[ quorum_announce: write down on one node who leads an election over several, unless a later leader did.
  KEYS[1]  leader  string, '<term> <since_ms> <state> <token> <who>'; the state is 'leads' or 'resigned', and '/<term>' follows when one before
                   this one resigned: the last that did
  ARGV[1]  term    an integer below 2^53
  ARGV[2]  record  the whole of it
  ARGV[3]  ttl_ms  how long it is kept without being written again
  Returns  1 (written) | 0 (a later one is there)
]]
local term, state = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+) %S+ (%S+)')
local known = tonumber(term or 0)
if known > tonumber(ARGV[1]) then return 0 end
local before = string.match(state or '', '/(%d+)$')
if known < tonumber(ARGV[1]) and string.match(state or '', '^resigned') then before = term end
local record = ARGV[2]
if before then record = string.gsub(record, '^(%d+ %S+ %S+)', '%1/' .. before) end
redis.call('SET', KEYS[1], record, 'PX', ARGV[3])
return 1
