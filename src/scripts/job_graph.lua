--[[ job_graph: a job of a flow with those for which it waits and those that wait for it, and theirs. Changes nothing.
  KEYS[1]  queue  hash: the queue of its type
  KEYS[2]  absent never there (include/job_rules.lua)
  ARGV[1]  name   '<type>/<id>'
  ARGV[2]  most   how many at most
  ARGV[3]  bytes  after so many that it has read it looks no further
  Returns  {1 if there are more, else 0, {name, state, since_ms, parents}...}; it comes first, then the nearest. State is as in job_read; of parents only
           those that are among them
]]
local call, key, held, _ = redis.call, KEYS[1], '', KEYS[2]
local base = string.match(key, '^(.*:q:)')
--#include server_time
--#include queue_state
--#include job_rules
--#include job_state
--#include job_kids
local server_now = now
local function turn_to(type)
    key, held, now = base .. type, base .. type .. ':held', server_now
--#include queue_now
end

local names, place, rows, is_cut, bytes = {ARGV[1]}, {[ARGV[1]] = 1}, {}, 0, 0
local function add(list)
    for name in string.gmatch(list, '[^/ ]+/%S+') do
        if not place[name] then
            if #names >= ARGV[2] + 0 then is_cut = 1 return end
            names[#names + 1], place[name] = name, #names + 1
        end
    end
end
local at = 1
while names[at] do
    if bytes > ARGV[3] + 0 then is_cut = 1 break end
    local type, id = string.match(names[at], '^([^/]+)/(.+)$')
    turn_to(type)
    local state, since, text = state_of(id)
    bytes = bytes + #(text or '')
    local parents = text and string.match(text, '^[^\n\t]*\t([^\n\t]*)') or ''
    rows[at] = {names[at], state, since or '', parents}
    add(parents)
    local children = call('HGET', part('links'), 'k' .. id) or ''
    add(children)
    for from = 0, has_more_kids(children) and call('LLEN', part('kids:' .. id)) - 1 or -1, 10 do
        if is_cut == 1 then break end
        for _, names in ipairs(call('LRANGE', part('kids:' .. id), from, from + 9)) do add(names) end
    end
    at = at + 1
end
bytes = 0
for _, row in ipairs(rows) do
    local known = {}
    for name in string.gmatch(row[4], '%S+') do
        if place[name] and bytes > ARGV[3] + 0 then is_cut = 1 break end
        if place[name] and place[name] <= #rows then
            known[#known + 1] = name
            bytes = bytes + #name
        end
    end
    row[4] = table.concat(known, ' ')
end
return {is_cut, unpack(rows)}
