-- Where many jobs that are to be changed are looked for. Needs place, ready, ranked, later, held, queue_entry and job_rules.
local where = ({ready = ready, ranked = ranked, delayed = later, running = held})[place] or part(place)
local is_tag = string.find(place, '^tag:')

-- So many from there on: entries, tokens or ids.
local function listed_from(first, count)
    if place == 'ready' then return call('LRANGE', where, first, first + count - 1) end
    if place ~= 'blocked' and not is_tag then return call('ZRANGE', where, first, first + count - 1) end
    return call('ZRANGE', where, first, first + count - 1, 'REV')  -- the youngest first: children, before they fail because of their parents
end

-- Takes it from there, where withdraw() would have to look for it; and whether the entry stays there, if that is known before. One that is not of this
-- generation is not that of the job. In a list withdraw() does it for one that is far behind, or leaves it there.
local function remover_of(entry, passed, job)
    if place ~= 'ready' and place ~= 'ranked' and place ~= 'delayed' then return nil, is_tag ~= nil end
    local text = place == 'ranked' and string.sub(entry, 24) or entry
    local _, _, _, start, _, _, length = open(text)
    if string.match(text, '^(%d+) ', start + length) ~= string.match(job.text, '^%a (%d+)') then return nil, true end
    if place ~= 'ready' then return function() call('ZREM', where, entry) end, false end
    if passed > 5000 then return end
    return function() call('LREM', ready, 1, entry) end, false
end

-- By withdraw(), which looks through a short list, and the ends of a long one.
local function work_of_withdrawal()
    local length = call('LLEN', ready)
    return length <= 1000 and length / 15 or 40
end
