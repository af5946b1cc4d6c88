-- What is written for the queue as a whole. Needs queue_once.
local function remember(text) call('SET', memory, text, 'PX', '120000') end

local function touch(...)
    if is_stale then
        call('HSET', key, 'v', format, 'x', string.format('%.0f', now + kept), 'c', now_text, ...)
        if is_back then call('HSET', key, 's', string.format('%.0f', ahead)) end
        call('PEXPIRE', key, kept)
    elseif ... then
        call('HSET', key, 'c', now_text, ...)
    end
end

-- A lease that ends then, or something that is due: 'n' is not later.
local function lower(when)
    if not calm or when >= calm then return end
    calm = when
    call('HSET', key, 'n', string.format('%.0f', when), 'c', now_text)
end
