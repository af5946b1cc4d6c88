--[[ client_read: what clients wrote of themselves, for people who look. Changes nothing. A record that somebody else wrote must neither hide the others nor be large.
  KEYS[1..]  hashes of clients
  ARGV[1]    largest  how many bytes a field may have
  ARGV[2..]  fields
  Returns    for each key: its values in the order of the fields, '' where there is none; {}: it is gone; or a text that says why it is not read
]]
local largest, fields = tonumber(ARGV[1]), {}
for i = 2, #ARGV do fields[i - 1] = ARGV[i] end

local function read(key)
    for _, field in ipairs(fields) do
        local size = redis.pcall('HSTRLEN', key, field)
        if type(size) ~= 'number' then return size.err end
        if size > largest then
            return 'its field ' .. field .. ' has ' .. size .. ' bytes, more than the ' .. largest .. ' of a client'
        end
    end
    local values, is_there = redis.call('HMGET', key, unpack(fields)), false
    for i, value in ipairs(values) do
        is_there = is_there or value ~= false
        values[i] = value or ''
    end
    return is_there and values or {}
end

local answer = {}
for i, key in ipairs(KEYS) do
    local good, found = pcall(read, key)
    answer[i] = good and found or 'it can not be read'
end
return answer
