-- What the hash of a queue says. Its field v is one text, since each field costs as much to read as all of this; in a table:
--   1  format    2  number of the last batch    3  when this hash goes, ms; 1e15: the queue is paused, and the hash stays
--   4  at this time, ms, one of those who wait will look again; 0 when one of them was told of something or has left
--   5  before this time, ms, no lease ends and nothing that is put off is due; 0: that is not known
--   6  by how much the queue's time is ahead of the server's, ms    7  the queue's time when something was written here
-- Other fields, where there is something to say:
--   f  somebody waits for room    k  keys are remembered for a while    w<lane>  in steal_push
--   o  what was set of its limits: queue_settings.lua    n  how many dead letters were dropped
--   h  others wait for jobs of this queue, and it cannot be seen by their ids
-- The lists, sets and hashes of items stay as long as there are items; this hash goes when nobody uses the queue for the retention, and some minutes.
-- Needs call.
local format, layout = 'queue 2', '<c7dddddd'
local function opened(text)
    if text and #text == 55 then return {struct.unpack(layout, text)} end
    return {text or '', 0, 0, 0, 0, 0, 0}
end
local function is_foreign(queue, state) return state[1] ~= format and (state[1] ~= '' or call('EXISTS', queue) == 1) end

-- While a queue is paused nothing is taken from it. This is not a field of its own, which each call would have to read; and pushes and pulls of clients of
-- 0.1, which do not know of it, leave it as it is, since they renew only what goes soon.
local never = 1e15
local function is_paused(state) return state[3] >= never end

-- The queue's own time: it stands still when the server's clock is set back, or what lies with the dead and what is put off would come that much later.
-- is_back: it was set back since this was written.
local function own_time(state, server_now)
    local now = math.max(server_now + state[6], state[7])
    if now > server_now + state[6] then state.is_back = true end
    state[6], state[7] = now - server_now, now
    return now
end

-- Only where there is one, or it would stay for ever.
local function save(queue, state)
    if state[1] ~= format then return end
    call('HSET', queue, 'v', struct.pack(layout, unpack(state, 1, 7)))
    if state.settings then
        call('HSET', queue, 'o', state.settings)
        state.settings = nil
    end
end

-- It stays for so long, ms, from now on; if it is paused, until that ends.
local function keep_hash(queue, state, now, time)
    state[1] = format
    if not is_paused(state) then state[3] = now + time end
    save(queue, state)
    if not is_paused(state) then call('PEXPIRE', queue, time) end
end
