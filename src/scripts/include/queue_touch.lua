-- What is written for the queue as a whole. Needs queue_once.
local function remember(text) call('SET', memory, text, 'PX', '120000') end

local function touch(is_changed)
    if is_stale then
        keep_hash(key, was, now, kept)
    elseif is_changed or was.settings then
        save(key, was)
    end
end

-- A lease ends then, or something is due.
local function lower(when)
    if when >= was[5] then return end
    was[5] = when
    save(key, was)
end
