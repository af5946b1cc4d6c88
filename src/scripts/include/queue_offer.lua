-- One item that comes to a queue where nobody has to wait for it: the first who waits gets it in the message, leased for a moment, and says soon
-- that it has it. Who waits under a name with '+' takes that. Needs queue_rules, now, plain, ranked, and as locals held and items.
local done = string.format('%.0f %s %d %.0f%s', sequence, batch, accepted, server_now, table.concat(twins))
local to, offer = nil, plain[1]
if #plain == 1 and #ranked == 0 and #shown(offer) <= 4096 and lease > 0 and most_deliveries > 1 and call('EXISTS', KEYS[2], KEYS[3]) == 0 then
    local first = call('ZPOPMIN', KEYS[7])
    to = first[1]
    if to and string.byte(to) ~= 43 then
        call('ZADD', KEYS[7], first[2], to)
        to = nil
    end
end
if to then
    local moment = math.min(lease, 400)  -- shorter than the time after which who enqueued looks whether it was taken (depot_push.cpp)
    local token, ends = string.match(offer, '^%S+') .. '.1', string.format('%.0f', now + moment)
    local fields = {'l', batch}
    call('HSET', items, token, offer)
    call('ZADD', held, ends, token)
    if calm and now + moment < calm then  -- as lower() does
        calm = now + moment
        fields[3], fields[4] = 'n', ends
    end
    if was[6] then fields[#fields + 1], fields[#fields + 2] = 't', '0' end  -- as tell() does
    touch(unpack(fields))
    remember(done)
    -- May fail, so it comes last.
    local heard = redis.pcall(publish, channel .. to, string.format('o%.0f %d %s\n', server_now, moment, token) .. shown(offer))
    if type(heard) == 'number' and heard > 0 then
        begun(offer, to)
        plain, told, was[6] = {}, 1, false
    else
        call('ZREM', held, token)
        call('HDEL', items, token)
    end
end
