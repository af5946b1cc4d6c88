-- Items that come: where each of them goes. Needs queue_batch, queue_places_more, queue_entry, and queue_plain or job_enter.
local count, space, told = (#ARGV - 4) / 2, 1e15, 0
if most_length > 0 then space = most_length - call('LLEN', ready) - call('ZCARD', ranked) - call('ZCARD', later) end
local plain, by_rank, put_off, keys, twins, accepted, earliest = {}, {}, {}, {}, {}, count, 1e15

local function twin_of(name)
    if keys[name] then return keys[name] end
    local id, until_ms = string.match(call('HGET', dedup, name) or '', '^(%S+) ?(%d*)$')
    return id and not (until_ms ~= '' and until_ms + 0 <= now) and id or nil
end

for i = 1, count do
    local options, payload, at, delay, priority, window, name = ARGV[3 + 2 * i], ARGV[4 + 2 * i]
    if options ~= '' then
        at, delay, priority, window, name = string.match(options, '^(@?)(%d+) (%-?%d+) (%d+) (.*)$')
        if not delay then return refuse('options: <delay_ms or @time_ms> <priority> <window_ms> <key>') end
        if at == '@' then delay = math.max(delay - server_now, 0) end
    end
    local twin = name and name ~= '' and twin_of(name)
    if twin then
        twins[#twins + 1] = ' ' .. i .. '=' .. twin
    elseif space <= 0 then
        accepted = i - 1
        break
    else
        space = space - 1
        local id = batch .. '-' .. i
        if options == '' then
            plain[#plain + 1] = id .. ' 0\n' .. entered(id, payload, '', 0)
        else
            if name ~= '' then id, keys[name] = id .. 'd', id .. 'd' end
            payload = entered(id, payload, name, window, priority)
            local entry = id .. ' 0 ' .. priority .. ' ' .. window .. ' ' .. #name .. '\n' .. name .. payload
            if delay + 0 > 0 then
                earliest = math.min(earliest, now + delay)
                put_off[#put_off + 1], put_off[#put_off + 2] = now + delay, entry
            elseif priority + 0 ~= 0 then
                by_rank[#by_rank + 1], by_rank[#by_rank + 2] = -priority, order_of(id) .. ' ' .. entry
            else
                plain[#plain + 1] = entry
            end
        end
    end
end
local done = ARGV[2] .. ' ' .. batch .. ' ' .. accepted .. ' ' .. server_text .. table.concat(twins)
