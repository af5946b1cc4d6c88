-- What the ends of jobs mean for many others is done in steps, by the calls that come next: what is left is in a list that concerns all types. Needs job_sides,
-- job_spread, job_stage_enter and job_kids.
--   todo  list: 'n <pending> <bad> <why>\n<names>'  so much is to be added to pending and bad parents of these jobs
--               'k <type>/<id> <from> <to> <pending> <bad> <why>'  the same for its children in these elements of its list (from 0 on, without the last)
--               'f <batch>'  the flow that was sent in parts is entered (job_stage_enter.lua)
--               'l <type> <id>\n<single name>'  those in aside:<id> of that type are cancelled, because that job took their place

-- One step of it.
local function go_on()
    while nodes_left > 0 do
        local item, rest = call('LINDEX', todo, 0), nil
        if not item then return end
        local kind = string.sub(item, 1, 1)
        if kind == 'n' then
            local pending, bad, why, names = string.match(item, '^n (%S+) (%S+) ([^\n]*)\n(.*)$')
            agenda[#agenda + 1] = {names = names, pending = pending + 0, bad = bad + 0, why = why}
        elseif kind == 'k' then
            local type, id, from, to, last = string.match(item, '^k ([^/]+)/(%S+) (%d+) (%d+) (.*)$')
            local pending, bad, why = string.match(last, '^(%S+) (%S+) (.*)$')
            local names, size, following = {}, 0, from + 0
            for _, some in ipairs(call('LRANGE', side_of(type).q .. ':kids:' .. id, from, math.min(from + 10, to + 0) - 1)) do
                if size > 1000 then break end
                names[#names + 1], size, following = some, size + #some, following + 1
            end
            agenda[#agenda + 1] = {names = table.concat(names, ' '), pending = pending + 0, bad = bad + 0, why = why}
            if following > from + 0 and following < to + 0 then rest = string.format('k %s/%s %d %d %s', type, id, following, to, last) end
        elseif kind == 'f' then
            rest = enter_some(string.sub(item, 3), nodes_left) and item
            nodes_left = 0
        else
            local type, by, name = string.match(item, '^l (%S+) (%S+)\n(.*)$')
            local one = side_of(type)
            local aside = one.q .. ':aside:' .. by
            local ids = call('ZRANGE', aside, 0, 24)
            for _, id in ipairs(ids) do
                local is_blocked = one.blocked[id] == nil and call('ZSCORE', one.q .. ':blocked', id)
                if is_blocked and not call('ZSCORE', one.q .. ':line:' .. name, id) then displace(one, id, name, by) end
            end
            if #ids > 0 then
                call('ZREM', aside, unpack(ids))
                nodes_left, rest = nodes_left - 4 * #ids, item
            end
        end
        if rest then call('LSET', todo, 0, rest) else call('LPOP', todo) end
        spread((kind == 'n' or kind == 'k') and 1 or 0)
    end
end
