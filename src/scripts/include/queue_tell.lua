-- Tells those who wait in this sorted set, the first first, until so many have heard it; each is then forgotten, and asks again. One whom
-- nobody hears is passed over: it is gone, or asks again when it is connected again. Of items of a paused queue nobody is told. May fail (a forbidden
-- channel), so it comes last.
-- Needs queue_was, publish and channel.
local function nobody_looks()
    if was[4] == 0 then return end
    was[4] = 0
    save(key, was)
end
local function tell(waiting, word, most)
    local told = 0
    if word == 'r' and is_paused(was) then return 0 end
    while told < most do
        local first = call('ZPOPMIN', waiting)[1]
        if not first then break end
        local heard = redis.pcall(publish, channel .. first, word)
        if heard ~= 0 then told = told + 1 end
    end
    if told > 0 and word == 'r' then nobody_looks() end
    return told
end
