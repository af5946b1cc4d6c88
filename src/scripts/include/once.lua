-- Counts a call once, however often it is sent. Needs call, key, now, session and sequence; set and del, which the script writes.
--   a<session>  '<last sequence that counted> <when that was, ms>[ <what it was answered>]'
--   r<number>   each session once, with numbers from rf to rl
-- A session is forgotten only when there are more than 1,000 and it counted nothing for a minute, longer than any call is sent again: so
-- however many are in flight, each counts once.
local function has_counted(known) return known and sequence <= tonumber(string.match(known, '^%d+')) end

-- What it was answered, if that was remembered.
local function answer_of(known) return string.match(known, '^%d+ %d+ (.*)$') end

-- This call counts; answer: what it is answered, if the same is to be answered again. Too many sessions: each call looks at the first two and forgets the one that is idle or makes it the last, so that
-- there are never more than came or were in use within two minutes. known, first and last are what a<session>, rf and rl were.
local function remember(known, first, last, answer)
    local function put(field, value) set[#set + 1], set[#set + 2] = field, value end
    local function write_session(name, number, rest) put('a' .. name, string.format('%.0f %.0f%s', number, now, rest)) end
    local from, to = tonumber(first or 1), tonumber(last or 0)
    local function append(name)
        to = to + 1
        put('r' .. to, name)
    end
    write_session(session, sequence, answer and ' ' .. answer or '')
    if not known then append(session) end
    if to - from >= 1000 then
        local names = call('HMGET', key, 'r' .. from, 'r' .. from + 1)
        local texts = call('HMGET', key, 'a' .. names[1], 'a' .. names[2])
        for i = 1, to - from > 1000 and 2 or 1 do
            local number, heard, rest = string.match(texts[i], '^(%d+) (%d+)(.*)$')
            del[#del + 1] = 'r' .. from
            from = from + 1
            if names[i] ~= session and now - heard > 60000 then
                del[#del + 1] = 'a' .. names[i]
            else
                append(names[i])
                -- The clock was set back: its minute begins anew.
                if names[i] ~= session and heard + 0 > now then write_session(names[i], number, rest) end
            end
        end
    end
    if from ~= tonumber(first) then put('rf', from) end
    if to ~= tonumber(last) then put('rl', to) end
end
