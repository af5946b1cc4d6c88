-- Of what was taken, what is to be run; the rest was cancelled or put off since. Needs job_work and queue_take.
local function admit()
    if #tokens == 0 then return end
    local ids, taken, texts, begun, dropped = {}, {}, {''}, {}, {}
    for i, token in ipairs(tokens) do ids[i] = id_of(token) end
    local known = call('HMGET', part('records'), unpack(ids))
    for i, id in ipairs(ids) do
        local entry, text = answer[i + 1], known[i]
        if text and string.match(text, '^w (%d+)') == (attempt_of(entry)) then
            taken[#taken + 1] = tokens[i]
            texts[#texts + 1] = entry .. '\n' .. text
            begun[#begun + 1], begun[#begun + 2] = id, string.format('%s %.0f %s', string.match(tokens[i], '%d+$'), now, worker)
            news[#news + 1] = 'started ' .. id
        else
            dropped[#dropped + 1] = tokens[i]
            is_stopping(id, (attempt_of(entry)))
        end
    end
    if #dropped > 0 and lease > 0 then
        call('ZREM', held, unpack(dropped))
        call('HDEL', items, unpack(dropped))
    end
    in_chunks('HSET', part('running'), begun)
    tokens, answer = taken, texts
end
