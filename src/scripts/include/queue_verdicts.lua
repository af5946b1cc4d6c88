-- What became of items that are held. Needs queue_return, queue_dead and queue_judge or job_judge, and as locals held and items.
--   ARGV[6]  how many are done    ARGV[7..]  their tokens; then for each other one its token, what, and why:
--   what     'later <ms>' (again, after that), 'unused' (nobody saw it), 'extend <ms>' (its lease)
-- lost: the numbers of those that this caller does not hold any more, from 1 on.
local done, lost, find = tonumber(ARGV[6]), {}, string.find
local words, spans = {}, {}  -- of each other one, all of them read before anything is written
for i = 8 + (done or 0), #ARGV, 3 do
    local what, span = string.match(ARGV[i], '^(%a+) ?(%d*)$')
    if takes_ms[what] ~= (span ~= '') or not ARGV[i + 1] then return refuse('what became of an item: a word, ms if it takes them, and why') end
    words[#words + 1], spans[#spans + 1] = what, span
end

local function finish()
    -- A server out of memory refuses only the first write of a script, and not one that removes. What is done frees memory, so it must pass,
    -- and so must taking: nothing becomes more by it.
    if done == 0 then
        call('ZREM', held, '')
        return
    end
    -- Mostly all are held; if only some are, what lies in items says which.
    local count = call('ZREM', held, unpack(ARGV, 7, 6 + done))
    local entries = count > 0 and count < done and call('HMGET', items, unpack(ARGV, 7, 6 + done))
    for i = 1, done do
        local token = ARGV[6 + i]
        if count == done or (entries and entries[i]) then
            ended(token)
            if find(token, 'd.', 1, true) then forget_key(call('HGET', items, token)) end
        else
            lost[#lost + 1] = i
        end
    end
    call('HDEL', items, unpack(ARGV, 7, 6 + done))
end

local function judge()
    for n, what in ipairs(words) do
        local i = 4 + done + 3 * n
        local token, span = ARGV[i], spans[n]
        local deliveries = tonumber(string.match(token, '%d+$'))
        local entry = call('ZSCORE', held, token) and (what == 'extend' and '' or call('HGET', items, token))
        if not entry then
            lost[#lost + 1] = done + n
        elseif what == 'extend' then
            call('ZADD', held, 'GT', now + span, token)
            soonest = math.min(soonest, now + span)  -- somebody has to look then, if its holder dies
            extended(token)
        else
            call('ZREM', held, token)
            call('HDEL', items, token)
            if what == 'unused' then
                ready_again(entry, deliveries - 1, front)
            elseif judged(token, entry, deliveries, what, span, ARGV[i + 2]) then
                soonest = math.min(soonest, now + tonumber(span ~= '' and span or 1e15))
            elseif is_exhausted(entry, deliveries) then
                die(entry, deliveries, ARGV[i + 2])
            elseif span == '0' then
                ready_again(entry, deliveries, front)
            else
                local id, _, more, at = open(entry)
                soonest = math.min(soonest, now + span)
                call('ZADD', later, now + span, id .. ' ' .. deliveries .. more .. '\n' .. string.sub(entry, at))
            end
        end
    end
end
