--[[ job_read: what is known of jobs of one type: of the first of these, as many as it may read at once. Changes nothing.
  KEYS[1]  queue  hash: the queue of the type
  KEYS[2]  held   sorted set
  KEYS[3]  absent never there (include/job_rules.lua)
  ARGV[1]  most   after so many bytes it stops, and after 300 jobs
  ARGV[2]  cut    so many bytes are told of each text
  ARGV[3..]       their ids
  Returns  {state, since_ms, record, running, result, progress, trail, 1 if something was cut, else 0, due_ms if it is delayed} of each; state is 'unknown', 'waiting', 'blocked',
           'running', 'completed', 'failed' or 'cancelled', and what is not there is ''. Of a trail the end is told
]]
local call, key, held, _ = redis.call, KEYS[1], KEYS[2], KEYS[3]
--#include server_time
--#include queue_state
--#include queue_now
--#include job_rules
--#include job_state
--#include queue_entry
--#include job_withdraw
local has_delayed = call('EXISTS', part('later')) == 1
local most, cut, found, bytes = tonumber(ARGV[1]), tonumber(ARGV[2]), {}, 0  -- bytes: of what takes time, too
local function due_of(id, text)
    local entries = has_delayed and possible_entries(key, id, text) or {}
    bytes = bytes + 200 * #entries
    for _, due in ipairs(#entries > 0 and call('ZMSCORE', part('later'), unpack(entries)) or {}) do
        if due and due + 0 > now then return math.floor(due - was[6]) end
    end
    return ''
end
for i = 3, #ARGV do
    local id = ARGV[i]
    local state, since, text = state_of(id)
    local row, is_cut = {state, since or ''}, 0
    local function put(value, limit)
        bytes = bytes + #value
        if #value > limit then value, is_cut = string.sub(value, 1, limit), 1 end
        row[#row + 1] = value
    end
    local head, size = string.match(text or '', '^%a %d+ %d+ (%d+) [^\n]*()\n')
    put(text or '', (size or 0) + (head or 0) + cut)
    for _, name in ipairs({'running', 'results', 'progress'}) do put(call('HGET', part(name), id) or '', cut) end
    local trail = call('HGET', part('trail'), id) or ''
    if #trail > cut then trail, is_cut = string.sub(trail, -cut), 1 end
    bytes = bytes + #trail
    row[7], row[8], row[9] = trail, is_cut, state == 'waiting' and due_of(id, text) or ''
    found[#found + 1] = row
    if bytes > most or #found == 300 then break end
end
return found
