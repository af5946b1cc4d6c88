-- Forgets what is over. Needs pool_holds and next_in_line. In bounded steps: `more` says that there may be more of it, and the caller asks again.
local offers_look, leases_look, longest_window = 100, 400, 60000

-- Looks at offers only when one of them can be over. The oldest come first.
local function settle_offers()
    if first_offer > last_offer or (offers_end and offers_end > now and offers_end < now + longest_window) then return end
    local from, open = first_offer, nil
    offers_end = nil
    for _ = 1, 40 do
        if open or from > last_offer then break end
        local to, fields, numbers, texts = math.min(last_offer, from + offers_look - 1), {}, {}, {}
        for i = from, to do fields[#fields + 1] = 'y' .. i end
        for i, id in ipairs(call('HMGET', key, unpack(fields))) do
            if id and not dropped[id] then  -- dropped or moved on in this very call otherwise
                texts[#texts + 1], numbers[#numbers + 1] = 'i' .. id, from + i - 1
            end
        end
        for i, text in ipairs(texts[1] and call('HMGET', key, unpack(texts)) or {}) do
            local one = text and parse(string.sub(texts[i], 2), text)
            if one and one.state == 'offered' and one.number == numbers[i] then
                if one.ends <= now then
                    suspect(one.id)
                    drop(one)
                else
                    open = open or numbers[i]
                    heed(one)
                end
            end
        end
        from = to + 1
    end
    first_offer = math.max(first_offer, open or from)
    if from <= last_offer then offers_end = now end  -- the rest is looked at by the next call
end

-- Looks at leases only when one of them can be over, or is further away than it is long since the clock was set back. From the last one on
-- down: what a hold's end moves into a slot has been looked at.
local function settle_leases()
    if n == 0 or not bound then return end
    if not cursor then
        if bound > now and bound <= now + bound_span then return end
        cursor, found_bound, found_span = n, nil, nil
    end
    cursor = math.min(cursor, n)
    local to = math.max(1, cursor - leases_look + 1)
    load(to, cursor)
    for i = cursor, to, -1 do
        local one = slots[i]
        if one.state == 'held' and one.ends <= now then
            drop(one)
        elseif one.state == 'held' then
            heed(one)
        end
    end
    if n == 0 then return end
    if to > 1 then
        cursor, more = to - 1, true
    else
        bound, bound_span, cursor = found_bound, found_span, nil
    end
end

local function settle()
    settle_offers()
    settle_leases()
end

-- When a waiter should look again, if nobody tells it before: when the first lease or offer can be over.
local function look_again(ttl)
    if more then return 0 end
    local first = math.min(n > 0 and bound or now + ttl, first_offer <= last_offer and offers_end or now + ttl)
    return math.max(first - now, 1)
end
