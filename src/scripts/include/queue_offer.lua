-- One item that comes to a queue where nobody has to wait for it: the first who waits gets it in the message, leased for a moment, and says soon
-- that it has it. Who waits under a name with '+' takes that. Needs queue_once, queue_batch, queue_places, queue_next and done, and of the item: offer, its entry,
-- or nothing; its id; and message, what is shown of it.
-- Not while the hash has to be renewed: touch() does that, and so does who begins to wait.
local to, is_taken = nil, false
if offer and not is_stale and not is_paused(was) and #message <= 4096 and lease > 0 and most_deliveries > 1 and call('EXISTS', ready, ranked) == 0 then
    -- What comes back, or is due, is before it, and who takes finds that. What ends may have been done long ago.
    if was[5] <= now and was[5] > 0 then was[5] = next_time(held, key .. ':later') end
    local first = was[5] > now and call('ZPOPMIN', waiting) or {}
    to = first[1]
    if to and string.byte(to) ~= 43 then
        call('ZADD', waiting, first[2], to)
        to = nil
    end
end
if to then
    local moment = math.min(lease, 400)  -- shorter than the time after which who enqueued looks whether it was taken (depot.cpp)
    local token, ends = id .. '.1', string.format('%.0f', now + moment)
    call('HSET', items, token, offer)
    call('ZADD', held, ends, token)
    was[4], was[5] = 0, math.min(was[5], now + moment)  -- as tell() and lower() do
    save(key, was)
    call('SET', memory, done, 'PX', '120000')
    -- May fail, so it comes last.
    local heard = redis.pcall(publish, channel .. to, 'o' .. server_text .. ' ' .. (moment == 400 and '400' or moment) .. ' ' .. token .. '\n' .. message)
    is_taken = type(heard) == 'number' and heard > 0
    if not is_taken then
        call('ZREM', held, token)
        call('HDEL', items, token)
    end
end
