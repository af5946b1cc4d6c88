--[[ session_destroy: end sessions of a user, or (keep) look which of them are there and forget the others.
  KEYS[1]  index     of the user, as in session_create
  KEYS[2..]          the sessions, hashes
  ARGV[1]  what      'destroy' | 'keep'
  ARGV[2..]          their ids, in the same order
  Returns  {ids of those that were there, ...}
]]
local call, found = redis.call, {}
for i = 2, #ARGV do
    if call('EXISTS', KEYS[i]) == 1 then found[#found + 1] = ARGV[i] end
    if ARGV[1] == 'destroy' then call('DEL', KEYS[i]) end
    if ARGV[1] == 'destroy' or found[#found] ~= ARGV[i] then call('ZREM', KEYS[1], ARGV[i]) end
end
return found
