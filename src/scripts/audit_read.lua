--[[ audit_read: entries of the audit log, the newest first. Changes nothing. Users who may only append write entries of any size, and others shorten the list meanwhile.
  KEYS[1]  log   list
  ARGV[1]  from  how many of the newest to pass over
  ARGV[2]  most  how many at most
  Returns  {how many there are, entry...}: as many as have 256 KiB together, one at least. Instead of one of more than 64 KiB its size, and it is the last
]]
local largest, left, from = 65536, 262144, tonumber(ARGV[1])
local found = {redis.call('LLEN', KEYS[1])}
for i = from, math.min(from + tonumber(ARGV[2]), found[1]) - 1 do
    local text = redis.call('LINDEX', KEYS[1], -1 - i)
    left = left - #text
    if #text > largest then
        found[#found + 1] = #text
        break
    end
    if left < 0 and #found > 1 then break end
    found[#found + 1] = text
end
return found
