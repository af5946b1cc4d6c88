--[[ statistics_add: add what a client counted to what all have counted. Nothing depends on it.
  KEYS[1]  statistics  hash: '<kind>[ <name>]' to a text as in src/lease/tally.hpp
  ARGV[1]  keep_ms     how long a name is kept after its last use
  ARGV[2]  most        how many fields there may be; beyond that no new ones are made
  ARGV[3..]            fields, and the counts to add to each
  Returns  how many were added
]]
local call, key, keep, most = redis.call, KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
--#include server_time

-- '<sum> <max>[ <bucket>:<count>]...': sums add up, the larger maximum stays.
local function merge(old, new)
    local buckets, order = {}, {}
    local sum, max = 0, 0
    for _, text in ipairs({old, new}) do
        local s, m, rest = string.match(text, '^(%d+) (%d+)(.*)$')
        sum, max = sum + s, math.max(max, m)
        for bucket, count in string.gmatch(rest, '(%d+):(%d+)') do
            if not buckets[bucket] then order[#order + 1] = bucket end
            buckets[bucket] = (buckets[bucket] or 0) + count
        end
    end
    table.sort(order, function(a, b) return a + 0 < b + 0 end)
    local words = {string.format('%.0f %.0f', sum, max)}
    for _, bucket in ipairs(order) do words[#words + 1] = string.format('%s:%.0f', bucket, buckets[bucket]) end
    return table.concat(words, ' ')
end

local function add(old, new)
    local pattern = '^(%d+) (%d+) (%d+) (%d+);([^;]+);([^;]+)'
    local a = {string.match(old or '0 0 0 0;0 0;0 0', pattern)}
    local b = {string.match(new, pattern)}
    if not b[6] then return end
    if not a[6] then a = {0, 0, 0, 0, '0 0', '0 0'} end
    return string.format('%.0f %.0f %.0f %.0f;%s;%s;%.0f', a[1] + b[1], a[2] + b[2], a[3] + b[3], a[4] + b[4], merge(a[5], b[5]),
        merge(a[6], b[6]), now)
end

local set, fields = {}, {}
for i = 3, #ARGV, 2 do fields[#fields + 1] = ARGV[i] end
local known, room = call('HMGET', key, unpack(fields)), most - call('HLEN', key)
for i, field in ipairs(fields) do
    local text = (known[i] or room > 0) and add(known[i], ARGV[2 * i + 2])
    if text then
        if not known[i] then room = room - 1 end
        set[#set + 1], set[#set + 2] = field, text
    end
end
if #set > 0 then call('HSET', key, unpack(set)) end
-- A few at a time, what was not used for so long goes.
local old = call('HRANDFIELD', key, 5, 'WITHVALUES')
for i = 1, #old, 2 do
    local seen = string.match(old[i + 1], ';(%d+)$')
    if not seen or now - seen > keep then call('HDEL', key, old[i]) end
end
call('PEXPIRE', key, keep)
return #set / 2
