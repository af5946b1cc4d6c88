-- One item that comes to a queue where nobody has to wait for it: the first who waits gets it in the message, leased for a moment, and says soon
-- that it has it. Who waits under a name with '+' takes that. Needs queue_rules, now, plain, ranked, and as locals held and items.
local to, offer, token, offered = nil, plain[1], nil, {}  -- offered: what is written to the queue's hash besides
if #plain == 1 and #ranked == 0 and #shown(offer) <= 4096 and lease > 0 and most_deliveries > 1 and call('EXISTS', KEYS[2], KEYS[3]) == 0 then
    to = call('ZRANGE', KEYS[7], 0, 0)[1]
    if to and string.byte(to) ~= 43 then to = nil end
end
local moment = math.min(lease, 400)  -- shorter than the time after which who enqueued looks whether it was taken (depot_push.cpp)
if to then
    token = string.match(offer, '^%S+') .. '.1'
    plain = {}
    call('ZREM', KEYS[7], to)
    call('HSET', items, token, offer)
    call('ZADD', held, now + moment, token)
    if calm and now + moment < calm then  -- as lower() does
        calm = now + moment
        offered = {'n', string.format('%.0f', calm)}
    end
    if was[6] then offered[#offered + 1], offered[#offered + 2] = 't', '0' end  -- as tell() does
end

-- How many heard it. May fail, so it comes last.
local function send_offer()
    local heard = redis.pcall(publish, channel .. to, string.format('o%.0f %d %s\n', server_now, moment, token) .. shown(offer))
    if type(heard) == 'number' and heard > 0 then
        begun(offer, to)
        return 1
    end
    call('ZREM', held, token)
    call('HDEL', items, token)
    call('RPUSH', KEYS[2], offer)
    plain = {offer}
    return 0
end
