-- Takes jobs, and passes over entries of jobs that are not to be run any more. Needs job_take and job_work.

-- Entries in front that are of jobs which were cancelled, or are forgotten; others are found when they are taken. Gives how many there were.
local function drop_cancelled(set, is_list, most)
    local entries, ids, count = is_list and call('LRANGE', set, 0, most - 1) or call('ZRANGE', set, 0, most - 1), {}, 0
    if #entries == 0 then return 0 end
    for i, entry in ipairs(entries) do ids[i] = string.match(entry, '(%d+%-%d+%a*) ') end
    for i, score in ipairs(call('ZMSCORE', part('cancelled'), unpack(ids))) do
        if not score and call('HEXISTS', part('records'), ids[i]) == 1 then break end
        is_stopping(ids[i], (attempt_of(is_list and entries[i] or string.sub(entries[i], 24))))
        count = i
    end
    if count == 0 then return 0 end
    if is_list then call('LTRIM', set, count, -1) else call('ZREMRANGEBYRANK', set, 0, count - 1) end
    return count
end

-- Fewer of them are left in ready, as far as they were counted (job_withdraw.lua).
local function count_passed(count)
    local stale = tonumber(call('HGET', part('stats'), 'stale') or 0)
    if stale > 0 then call('HINCRBY', part('stats'), 'stale', -math.min(stale, count)) end
end

local function size_of_answer()
    local bytes = 0
    for i = 2, #answer do bytes = bytes + #answer[i] end
    return bytes
end

-- Looks at no more than about 500 in a call that are not to be run; if there are more the next call comes soon.
local function take_jobs(want, ahead)
    take(want, ahead)
    local dropped = admit()
    local passed, rounds, whole_budget = dropped, 0, budget
    while dropped > 0 and #tokens < want do
        budget = whole_budget - size_of_answer()
        if budget <= 0 then
            left = true
            break
        end
        if passed >= 500 or rounds == 20 then
            soonest = math.min(soonest, now)
            break
        end
        rounds = rounds + 1
        passed = passed + drop_cancelled(ready, true, 200) + drop_cancelled(ranked, false, 200)
        local before_tokens, before_answer = tokens, answer
        ids, tokens, answer = {}, {}, {''}
        take(want - #before_tokens, 0)
        dropped = admit()
        passed = passed + dropped
        for i, token in ipairs(tokens) do
            before_tokens[#before_tokens + 1], before_answer[#before_answer + 1] = token, answer[i + 1]
        end
        tokens, answer = before_tokens, before_answer
    end
    if passed > 0 then count_passed(passed) end
end
