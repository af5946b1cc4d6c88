--[[ cron_fire: enter the jobs of schedules that are due, each due time once, whoever asks and however often; and tell what is due now.
  KEYS[1]  crons  sorted set
  KEYS[2]  specs  hash
  KEYS[3]  last   hash
  KEYS[4]  types  sorted set, as in job_push
  KEYS[5]  absent never there (include/job_rules.lua)
  ARGV[1]  rules  'PUBLISH|SPUBLISH <retention_ms of queues> <channel of those who wait for jobs>'
  ARGV[2]  most   how many of those that are due to tell, at most 1000
  ARGV[3..]       for each: its id, and '<version> <due_ms> <next_ms>[ <due time to be run>]...': what who asks has seen of it, and what it reckoned
                  from that. It counts if that is so still
  Returns  {now_ms, when the first of all is due, or 0, how many jobs were entered, when the first that is not due yet will be, or 0, and of those that are due: id, due_ms, '<first line of its spec>'...}
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT (nothing was written)
]]
--#include checks
--#include cron_keys
local call, key, was, _ = redis.call, KEYS[1], nil, KEYS[5]
local base = string.match(key, '^(.*):crons$')
local publish, retention, channel = string.match(ARGV[1], '^(S?PUBLISH) (%d+) (.+)$')
local most = whole(ARGV[2], 0, 1000)
if not (base and publish and most) then return refuse('rules: PUBLISH|SPUBLISH <retention_ms> <channel>, most: 0 to 1000') end
--#include queue_time
local server_now = now
--#include queue_state
--#include queue_states
--#include queue_entry
--#include queue_tell
--#include job_tags
--#include cron_enter
-- In a function: most calls need none of it.
local function line_up()
    local key = base .. ':q:' .. alone[1][1]
    local was = state_at(key)
--#include job_rules
--#include job_commit
--#include job_kids
--#include job_erase
--#include job_forget
--#include job_withdraw
--#include job_sides
--#include job_sides_commit
--#include job_single
--#include job_batch
--#include job_nodes
--#include job_links
--#include job_spread
    for _, one in ipairs(alone) do
        local side, id, rule, priority, name = side_of(one[1]), one[2], one[3], one[4], one[5]
        call('HSET', side.links, 's' .. id, rule .. ' 0 ' .. priority .. ' ' .. name)
        begin(side, id, '0', priority, true)
    end
    spread()
    commit_batches()
    commit_sides()
end
local moved, runs, entered = {}, {}, 0
for i = 3, #ARGV, 2 do
    local id, version, due, following, times = ARGV[i], string.match(ARGV[i + 1] or '', '^(%d+) (%d+) (%d+)([ %d]*)$')
    if not version then return refuse('schedules: <version> <due_ms> <next_ms>[ <due_ms>]...') end
    local score, spec = call('ZSCORE', crons, id), call('HGET', specs, id)
    if score and spec and not runs[id] and tonumber(score) == tonumber(due) and string.match(spec, '^%d+') == version then
        local type, priority, window, size, rule, options, at =
            string.match(spec, '^%d+ (%S+) %S+ %d+ (%-?%d+) (%d+) (%d+)(%a?) [^\n]*\n([^\n]*)\n()')
        local desk = desk_of(type)
        if not desk then return redis.error_reply('LOCKSTEP_FORMAT the queue of ' .. type .. ' is not in the format "' .. format .. '"') end
        local name, payload = string.sub(spec, at, at + size - 1), string.sub(spec, at + size)
        moved[#moved + 1], moved[#moved + 2], runs[id] = following, id, ''
        for time in string.gmatch(times, '%d+') do
            local head = (options == '' and '' or options .. ' ') .. 'cron=' .. time .. ',' .. id
            local before = desk.count
            local made = rule == '' and enter(desk, priority, window, head, name, payload) or
                enter_single(desk, type, priority, head, rule, name, payload)
            runs[id] = time .. ' ' .. made
            entered = entered + desk.count - before
        end
    end
end
local latest = {}
for id, text in pairs(runs) do
    if text ~= '' then latest[#latest + 1], latest[#latest + 2] = id, text end
end
in_chunks('ZADD', crons, moved)
in_chunks('HSET', last, latest)
for type, desk in pairs(desks) do
    if desk.count > 0 then put(desk, type, KEYS[4]) end
end
if #alone > 0 then line_up() end
local found = call('ZRANGE', crons, '-inf', now, 'BYSCORE', 'LIMIT', 0, most, 'WITHSCORES')
local first = tonumber(call('ZRANGE', crons, 0, 0, 'WITHSCORES')[2] or 'inf')
local following = #found > 0 and tonumber(call('ZRANGE', crons, '(' .. string.format('%.0f', now), '+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')[2] or 'inf') or first
local function time_or_none(at) return at and at < 1e15 and at or 0 end
local answer = {now, time_or_none(first), entered, time_or_none(following)}
for i = 1, #found, 2 do
    local spec = call('HGET', specs, found[i])
    if spec then
        local n = #answer
        answer[n + 1], answer[n + 2], answer[n + 3] = found[i], tonumber(found[i + 1]), string.match(spec, '^[^\n]*')
    else
        call('ZREM', crons, found[i])  -- nothing says what it is
    end
end
for _, desk in pairs(desks) do
    if desk.count > 0 then announce(desk) end
end
return answer
