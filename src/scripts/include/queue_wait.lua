-- Who found too little waits until it is told. Needs queue_once.

-- Is one of the first three there who wait? They look in time, but may have died.
local function somebody_looks(waiting)
    local names = call('ZRANGE', waiting, 0, 2)
    for i, name in ipairs(names) do names[i] = channel .. name end
    local heard = call('PUBSUB', publish == 'PUBLISH' and 'NUMSUB' or 'SHARDNUMSUB', unpack(names))
    for i = 2, #heard, 2 do
        if heard[i] > 0 then return true end
    end
    return false
end

-- Who asks waits, and looks again at this time at the latest; the first ones one after the other, or all would ask for the same, and those
-- behind them seldom if somebody looks at that time. Names stay for longer than it takes who waits to look again.
local function wait_from_now(waiting, name, look)
    call('ZADD', waiting, 'NX', us_text, name)
    call('PEXPIRE', waiting, 300000)
    local rank, looks = call('ZRANK', waiting, name), was[4]
    look = math.min(look, now + 30000)
    if rank > 2 and looks > now and looks <= look + 20 and somebody_looks(waiting) then return now + 30000 end
    look = look + math.min(rank, 16) * 10
    if rank == 0 or looks <= now or look < looks then
        was[4] = look
        save(key, was)
    end
    return look
end
