--[[ stream_add: append entries to a stream, once however often this is sent.
  KEYS[1]  stream      stream
  KEYS[2]  calls       hash: which call of each session was the last, of one stretch of two minutes; the number of that in field 'g'
  KEYS[3]  more_calls  hash: those of the stretch before or after that one
  ARGV[1]  session     of the caller; its calls follow one another
  ARGV[2]  sequence    of this call in its session, an integer of at least 1 that grows
  ARGV[3]  id          '*', or the id of the one entry that is added: '<ms>', '<ms>-<number>' or '<ms>-*'
  ARGV[4]  max_length  the oldest are dropped beyond that, an integer; 0: none
  ARGV[5]  trim        '~' (about so many, cheaper) or '='
  ARGV[6..]  entries   for each: how many texts follow, then fields and values in turn
  Returns  {id of the first, how many}; the others' ids follow that one without a gap
  Errors   LOCKSTEP_ARGUMENT (also: the id is not above the last one), or what XADD says (nothing was written)
]]
local call, session, stretch_s = redis.call, ARGV[1], 120
local function refuse(what) return redis.error_reply('LOCKSTEP_ARGUMENT ' .. what) end
local sequence, most = tonumber(ARGV[2]), tonumber(ARGV[4])
if session == '' or session == 'g' or not (sequence and sequence >= 1 and most and most >= 0) then
    return refuse('session: not empty, sequence: at least 1, max_length: at least 0')
end
local firsts, at = {}, 6
while at <= #ARGV do
    local texts = tonumber(ARGV[at])
    if not texts or texts < 2 or texts % 2 ~= 0 or texts > 4000 or at + texts > #ARGV then
        return refuse('an entry has 1 to 2000 fields, each with a value')
    end
    firsts[#firsts + 1] = at
    at = at + texts + 1
end
if #firsts == 0 or (#firsts > 1 and ARGV[3] ~= '*') then return refuse('one entry, or several without an id') end

-- A call is sent again for a minute at most: so two stretches are enough to know it, and whoever has gone is forgotten with them.
local stretch = math.floor(tonumber(call('TIME')[1]) / stretch_s)
local now_in, before_in = KEYS[2], KEYS[3]
if stretch % 2 == 1 then now_in, before_in = before_in, now_in end
local known = call('HMGET', now_in, 'g', session)
-- Both are asked, whatever stretch they are of: one may be left from long ago or, where the clock went back, be the newer one. What they
-- say is true in any case.
for _, last in ipairs({known[2] or '', call('HGET', before_in, session) or ''}) do
    local number, id = string.match(last, '^(%d+) (%S+)$')
    if number and tonumber(number) >= sequence then return {id, #firsts} end
end

local first
for _, from in ipairs(firsts) do
    local words = {'XADD', KEYS[1]}
    if most > 0 then words = {'XADD', KEYS[1], 'MAXLEN', ARGV[5], ARGV[4]} end
    -- Side by side: the clock may go on meanwhile.
    words[#words + 1] = first and string.match(first, '^%d+') .. '-*' or ARGV[3]
    for i = from + 1, from + tonumber(ARGV[from]) do words[#words + 1] = ARGV[i] end
    local added = redis.pcall(unpack(words))
    if added.err then
        if string.find(added.err, 'ID', 1, true) then return refuse('the id ' .. ARGV[3] .. ': ' .. added.err) end
        return added
    end
    first = first or added
end
if known[1] ~= tostring(stretch) then
    -- Of a later stretch: the clock went back, and these are the newest.
    if not (known[1] and tonumber(known[1]) > stretch) then call('DEL', now_in) end
    call('HSET', now_in, 'g', stretch)
    call('PEXPIRE', now_in, 3 * stretch_s * 1000)
end
call('HSET', now_in, session, string.format('%.0f %s', sequence, first))
return {first, #firsts}
