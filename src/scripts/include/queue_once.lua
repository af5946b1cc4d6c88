-- Runs a call once, however often it is sent: the caller's record says what its last call did. Needs queue_rules, server_time and memory.
-- Calls of one caller follow one another. The record is kept for longer than a call is sent again; one that comes later is late.
local sequence, deadline = whole(ARGV[2], 1, 1e15), whole(ARGV[3], 0, 1e15)
if not (sequence and deadline) then return refuse('sequence: at least 1, deadline_ms: a time') end
local record = call('GET', memory)
local known = record and tonumber(string.match(record, '^%d+')) or 0
if sequence < known or (sequence > known and now > deadline) then return {'late', now} end

-- From here on `now` is the queue's own time: it stands still when the server's clock is set back, or what lies with the dead and what is put
-- off would come that much later.
local server_now, ahead, latest = now, tonumber(was[8] or 0), tonumber(was[9] or 0)
now = now + ahead
local is_back = now < latest
if is_back then ahead, now = ahead + latest - now, latest end

local function remember(text) call('SET', memory, text, 'PX', '120000') end

-- The hash itself stays for the retention, at most twice that, so that it is moved seldom; and longer than those who wait are silent.
local function touch(...)
    local fields, kept = {...}, math.max(2 * retention, 300000)
    local is_old = not was[3] or was[3] - now < kept / 2
    local function add(name, value) fields[#fields + 1], fields[#fields + 2] = name, value end
    if is_old then
        add('v', format)
        add('x', string.format('%.0f', now + kept))
    end
    if is_back then add('s', string.format('%.0f', ahead)) end
    if #fields == 0 then return end
    add('c', string.format('%.0f', now))
    call('HSET', key, unpack(fields))
    if is_old then call('PEXPIRE', key, kept) end
end

-- A lease that ends then, or something that is due: 'n' is not later.
local calm = tonumber(was[7])
local function lower(when)
    if not calm or when >= calm then return end
    calm = when
    call('HSET', key, 'n', string.format('%.0f', when), 'c', string.format('%.0f', now))
end
