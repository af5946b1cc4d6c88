-- Of what was taken, what is to be run; the rest was cancelled or put off since: gives how many. Needs job_work and queue_take.
local function admit()
    if #tokens == 0 then return 0 end
    local count, taken, shown_to_worker, begun, dropped, match, sub = 0, {}, {''}, {}, {}, string.match, string.sub
    local known, by = texts, ' ' .. now_text .. ' ' .. worker
    for i, id in ipairs(ids) do
        local entry, text, token = answer[i + 1], known[i], tokens[i]
        local generation = match(entry, '^%S+ %d+\n(%d+) ') or attempt_of(entry)
        if text and match(text, '^w (%d+)') == generation then
            count = count + 1
            taken[count], shown_to_worker[count + 1] = token, receivable(entry .. '\n' .. text)
            begun[2 * count - 1], begun[2 * count] = id, sub(token, #id + 2) .. by
            started[#started + 1] = id
        else
            dropped[#dropped + 1] = token
            is_stopping(id, generation)
        end
    end
    if #dropped > 0 and lease > 0 then
        call('ZREM', held, unpack(dropped))
        call('HDEL', items, unpack(dropped))
    end
    if count > 0 then add_many('HSET', 'HDEL', part('running'), begun, long, 0) end
    tokens, answer = taken, shown_to_worker
    return #dropped
end
