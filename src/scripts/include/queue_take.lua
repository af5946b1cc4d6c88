-- Takes items: of larger priorities, of priority 0, of smaller ones. Needs queue_return, queue_bytes, read_within, and as locals held and items.
local ids, tokens, answer, left = {}, {}, {''}, false

local function taken_before()
    local texts = string.match(record, '\n([^\n]*)$')
    answer[1] = record
    if not texts then return {'late', server_now} end  -- that script was ended in the middle
    for token in string.gmatch(texts, '%S+') do tokens[#tokens + 1] = token end
    local entries = #tokens > 0 and lease > 0 and call('HMGET', items, unpack(tokens)) or {}
    for i = 1, #entries do answer[i + 1] = entries[i] and receivable(shown(entries[i])) or '' end
    return answer
end

-- Many fields or members at once. The server keeps few and short ones as one piece of memory, which it looks through for each of them; one that is
-- long makes a table of it. first, second: that one, as `add` wants it.
local long = string.rep('-', 65)
local function add_many(add, remove, where, list, first, second)
    if #list < 48 then
        call(add, where, unpack(list))
    else
        call(add, where, first, second, unpack(list))
        call(remove, where, long)
    end
end

-- Nobody has to wait for what did not fit into this answer.
local function is_short() return #tokens < want and not left end

-- ahead: so many more, unless one of them all was delivered before. What kills its worker would kill it with all that this one has in hand.
local function take(want, ahead)
    local most = want + ahead
    local found, is_cut = read_within(most + 1, 2, function(from, n) return call('ZRANGE', ranked, from, from + n - 1, 'WITHSCORES') end)
    local entries, is_list_cut
    local used, first, listed
    local function choose(count)
        answer, used, first, listed = {''}, {}, 1, 0
        local function from_ranked(above)
            while first < #found and #answer <= count and (not above or found[first + 1] + 0 < 0) do
                used[#used + 1] = found[first]
                answer[#answer + 1] = string.sub(found[first], 24)
                first = first + 2
            end
        end
        from_ranked(true)
        local rest = count + 1 - #answer
        if rest > 0 then
            if not entries then  -- and one more, to see whether there is one
                entries, is_list_cut = read_within(rest + 1, 1, function(from, n) return call('LRANGE', ready, from, from + n - 1) end)
            end
            left = #entries > rest or is_list_cut
            for i = 1, math.min(rest, #entries) do answer[#answer + 1] = entries[i] end
            listed = math.min(rest, #entries)
        else
            left = call('EXISTS', ready) == 1
        end
        if not is_list_cut then from_ranked(false) end  -- else there is more that is before them
        left = left or first < #found or is_cut
    end
    choose(most)
    for i = 2, most > want and #answer or 1 do
        if string.match(answer[i], '^%S+ (%d+)') % 1000000 > 0 then
            choose(want)
            break
        end
    end
    local fits = fitting(answer)
    if fits < #answer - 1 then choose(fits) end
    if #answer == 1 then return end
    local kept, ends, match, lease_end = {}, {}, string.match, string.format('%.0f', now + lease)  -- a number becomes text anew in each place
    for i = 2, #answer do
        local entry = answer[i]
        local id, deliveries = match(entry, '^(%S+) (%d+)')
        local token = deliveries == '0' and id .. '.1' or id .. '.' .. deliveries + 1
        ids[i - 1], tokens[i - 1] = id, token
        kept[2 * i - 3], kept[2 * i - 2] = token, entry
        ends[2 * i - 3], ends[2 * i - 2] = lease_end, token
        if lease == 0 and string.find(id, 'd', 1, true) then forget_key(entry) end
        if lease == 0 and #entry > largest then bury(entry, deliveries + 1, 'it is too large for the client that took it: ' .. #entry .. ' bytes') end
        if bytes_read > budget then answer[i] = receivable(entry) end
    end
    if lease > 0 then
        soonest = math.min(soonest, now + lease)
        add_many('HSET', 'HDEL', items, kept, long, 0)
        add_many('ZADD', 'ZREM', held, ends, 0, long)
    end
    if listed > 0 then call('LTRIM', ready, listed, -1) end
    if #used > 0 then call('ZREM', ranked, unpack(used)) end
end
