-- The entry of a job that is not to be run now. Needs ready, ranked and later.
-- Whoever takes it would pass over it. Where it can be found soon it goes at once, for then it does not count any more.
local function withdraw(id)
    local function remove(size, list, drop, queue)
        if call(size, queue) > 1000 then return end
        for _, entry in ipairs(call(list, queue, 0, -1)) do
            if string.match(entry, '(%d+%-%d+%a*) ') == id then drop(entry) end
        end
    end
    remove('LLEN', 'LRANGE', function(entry) call('LREM', ready, 1, entry) end, ready)
    for _, queue in ipairs({ranked, later}) do
        remove('ZCARD', 'ZRANGE', function(entry) call('ZREM', queue, entry) end, queue)
    end
end
