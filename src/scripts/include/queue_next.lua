-- When the first lease ends, or the first of what is put off is due; 1e15: never. Needs call.
local function next_time(held, later)
    local ends, due = call('ZRANGE', held, 0, 0, 'WITHSCORES')[2], call('ZRANGE', later, 0, 0, 'WITHSCORES')[2]
    return math.min(tonumber(ends or 1e15), tonumber(due or 1e15))
end
