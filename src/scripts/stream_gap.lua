#!lua flags=allow-oom
--[[ stream_gap: were entries removed before they were delivered to this group? They count once: the server then takes them for read.
  KEYS[1]  stream  stream
  ARGV[1]  group   of consumers
  ARGV[2]  is_new  '1': it was made just now, and what was removed before does not count
  Returns  how many, as far as the server can tell; 0 also where there is no such group
]]
local call = redis.call
if call('EXISTS', KEYS[1]) == 0 then return 0 end
local function fields_of(list)
    local fields = {}
    for i = 1, #list, 2 do fields[list[i]] = list[i + 1] end
    return fields
end
local group
for _, each in ipairs(call('XINFO', 'GROUPS', KEYS[1])) do
    local fields = fields_of(each)
    if fields.name == ARGV[1] then group = fields end
end
if not group then return 0 end
-- Ids as numbers: they may have more digits than a number of Lua.
local function is_less(left, right)
    local a, b = {string.match(left, '^(%d+)-(%d+)$')}, {string.match(right, '^(%d+)-(%d+)$')}
    for i = 1, 2 do
        if #a[i] ~= #b[i] then return #a[i] < #b[i] end
        if a[i] ~= b[i] then return a[i] < b[i] end
    end
    return false
end
local stream, position = fields_of(call('XINFO', 'STREAM', KEYS[1])), group['last-delivered-id']
local first, last = stream['first-entry'] and stream['first-entry'][1], stream['last-generated-id']
-- How many were added up to the last entry that this group can't be given any more.
local passed
if not first or position == last then
    passed = stream['entries-added']
elseif is_less(position, first) then
    passed = stream['entries-added'] - stream.length
else
    return 0
end
local read = group['entries-read']
if not read and position == '0-0' then read = 0 end
if ARGV[2] == '1' or not read then read = passed end
if read ~= group['entries-read'] or read < passed then
    call('XGROUP', 'SETID', KEYS[1], ARGV[1], first and position or last, 'ENTRIESREAD', math.max(read, passed))
end
return math.max(0, passed - read)
