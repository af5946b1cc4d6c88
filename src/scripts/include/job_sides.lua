-- Jobs of the same name, of any type, for what concerns several of them at once. Needs job_rules, queue_rules, queue_entry and server_now.
--   links    hash of a type, for jobs with an f in their id, and for those that such jobs wait for:
--     k<id>  '<type>/<id> ...': its children
--     o<id>  '<state> <pending> <bad> <policy> <when> <priority> <s: it is single>': it has parents, of which so many have not ended and so many failed or were
--            cancelled. State: b (blocked), d (ended because of them), - (neither). Policy when one is bad: f (it fails), s (skipped), g (goes on)
--   blocked  sorted set of a type: ids of jobs that wait for others, by the time, ms
local base, here = string.match(key, '^(.*):q:([^:]+)$')
local sides, todo = {}, base .. ':todo'  -- job_todo.lua
states[key] = was

local function side_of(type)
    if not sides[type] then
        local q = base .. ':q:' .. type
        local state = state_at(q)
        sides[type] = {type = type, q = q, links = q .. ':links', nodes = {}, blocked = {}, ended = {}, ready = {}, ranked = {}, later = {},
                       earliest = 1e15, added = {}, entered = {}, news = {}, tally = {}, state = state, now = own_time(state, server_now)}
    end
    return sides[type]
end

local function add_up_at(one, what, n) one.tally[what] = (one.tally[what] or 0) + n end

-- To be run: at once, or then.
local function enter(one, id, generation, when, priority)
    local more = priority + 0 ~= 0 and ' ' .. priority .. ' 0 0' or ''
    local entry = generation == 0 and id .. ' 0' .. more .. '\n0 0' or
        string.format('%s %d%s\n%d 0', id, generation % 2000 * 1000000, more, generation)
    one.entered[id] = 'entered'
    local at = one.now + (string.byte(when) == 64 and string.sub(when, 2) - server_now or when)
    if at > one.now then
        one.later[#one.later + 1], one.later[#one.later + 2] = string.format('%.0f', at), entry
        one.earliest = math.min(one.earliest, at)
    elseif more ~= '' then
        one.ranked[#one.ranked + 1], one.ranked[#one.ranked + 2] = -priority, order_of(id) .. ' ' .. entry
    else
        one.ready[#one.ready + 1] = entry
    end
end

-- It has ended without anybody's work.
local function close(one, id, state, why)
    local trail = call('HGET', one.q .. ':trail', id) or ''
    call('HSET', one.q .. ':trail', id, string.sub(trail, -16000) .. string.format('%.0f 0 -\t%s\n', one.now, why))
    one.ended[id] = state
    one.news[#one.news + 1] = state .. ' ' .. id
    add_up_at(one, state, 1)
end
