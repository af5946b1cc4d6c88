--[[ redlock_release: delete those of some keys that still hold a token, and wake who waits for them.
  KEYS[1..]  the keys
  ARGV[1]    token
  ARGV[2]    channel  what the names of processes' channels begin with
  ARGV[3]    whom     'first': the first that is connected, who also hears of those behind it | 'all'
  ARGV[4..]  those who wait: <process>/<room>/<what for>
  Returns    how many were deleted
]]
local deleted = 0
for i = 1, #KEYS do
    if redis.pcall('GET', KEYS[i]) == ARGV[1] then deleted = deleted + redis.call('DEL', KEYS[i]) end
end
for i = 4, #ARGV do
    local process, room = string.match(ARGV[i], '^([^/]+)/([^/]+)/')
    if process then
        local rest = ARGV[3] == 'first' and table.concat(ARGV, ' ', i + 1) or ''
        local heard = redis.pcall('PUBLISH', ARGV[2] .. process, 'f ' .. room .. ' ' .. ARGV[1] .. ' ' .. rest)
        if ARGV[3] == 'first' and type(heard) == 'number' and heard > 0 then break end
    end
end
return deleted
