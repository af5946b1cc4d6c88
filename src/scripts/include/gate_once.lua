-- Counts a call once, however often it is sent. Needs gate_state, session, sequence, was and at: was[at] is n<session>, was[at + 1] is t.
--   n<session>  the last sequence that counted     t  how many sessions came     r<t % 1000>  the session that came then
-- Of 1,000 sessions the last sequence is known; the one that came first makes room for the next.
local repeated, set, del = sequence <= tonumber(was[at] or 0), {'v', format, 'n' .. session, sequence}, {}
if not was[at] then
    local came = tonumber(was[at + 1] or 0)
    local place = 'r' .. came % 1000
    local before = came >= 1000 and call('HGET', key, place)
    if before then del[1] = 'n' .. before end
    for _, value in ipairs({place, session, 't', came + 1}) do set[#set + 1] = value end
end

-- Writes that it counted, and these fields. HSET comes first: a server out of memory refuses that one, and then nothing is half done.
local function count(fields)
    for _, value in ipairs(fields) do set[#set + 1] = value end
    call('HSET', key, unpack(set))
    remove(del)
    keep()
end
