--[[ scan_page: a page of a hash or a sorted set, for people who look. Changes nothing. What somebody else wrote must neither hide the rest nor be large.
  KEYS[1]  scanned  hash or sorted set
  ARGV[1]  command  'HSCAN' or 'ZSCAN'
  ARGV[2]  cursor   '0', or what was returned before
  ARGV[3]  count    about how many elements, 1 to 1000; fewer where they are large
  ARGV[4]  limit    an element that has more bytes, with its value, is not sent
  Returns  {the next cursor; '0': that was all, how many were not sent, element, value, element, value...}
  Errors   LOCKSTEP_ARGUMENT, NOPERM, or what the command says
]]
local count, limit, budget = tonumber(ARGV[3]), tonumber(ARGV[4]), 524288
if not limit or not count or count < 1 or count > 1000 or (ARGV[1] ~= 'HSCAN' and ARGV[1] ~= 'ZSCAN') then
    return redis.error_reply('LOCKSTEP_ARGUMENT command: HSCAN or ZSCAN; count: 1 to 1000; limit: bytes')
end
local found, bytes
repeat
    local page = redis.pcall(ARGV[1], KEYS[1], ARGV[2], 'COUNT', count)
    if page.err then return redis.error_reply((string.gsub(page.err, '^ERR (The user executing)', 'NOPERM %1'))) end
    found, bytes = {page[1], 0}, 0
    local all = page[2]
    for i = 1, #all, 2 do
        local size = #all[i] + #all[i + 1]
        if size > limit then
            found[2] = found[2] + 1
        else
            bytes = bytes + size
            found[#found + 1], found[#found + 2] = all[i], all[i + 1]
        end
    end
    count = math.floor(count / 10)
until bytes <= budget or count < 1
return found
