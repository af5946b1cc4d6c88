-- Runs a call once, however often it is sent: the caller's record says what its last call did. Needs queue_rules, queue_time and memory.
-- Calls of one caller follow one another. The record is kept for longer than a call is sent again; one that comes later is late.
local sequence, deadline = string.find(ARGV[2], '^[1-9]%d*$') and ARGV[2] + 0, string.find(ARGV[3], '^%d+$') and ARGV[3] + 0
if not (sequence and deadline) then return refuse('sequence: at least 1, deadline_ms: a time') end
local record = call('GET', memory)
local known = record and string.match(record, '^%d+') + 0 or 0
if sequence < known or (sequence > known and now > deadline) then return {'late', now} end

-- From here on `now` is the queue's own time.
local server_now = now
now = own_time(was, server_now)
local now_text = now == server_now and server_text or string.format('%.0f', now)

-- The hash stays for the retention, at most twice that, so that it is moved seldom; and longer than those who wait are silent.
local kept = math.max(2 * retention, 300000)
local is_stale = was.is_back or was[3] - now < kept / 2
