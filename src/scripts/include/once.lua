-- Counts a call once, however often it is sent. Needs call, key, now, session and sequence; set and del, which the script writes.
--   a<session>  '<last sequence that counted> <when that was, ms>[ <what it was answered>]'
--   r<number>   each session once, with numbers from rf to rl
--   rt          when to look next for sessions to forget, ms
-- A call is sent again for 55 s at most, and then may run 5 s later (src/lease/session_pool.hpp). A session that counted nothing for longer than these 60 s
-- is forgotten by the next calls, two of them by each; a younger one never, however many there are.
local function has_counted(known) return known and sequence <= tonumber(string.match(known, '^%d+')) end

-- What it was answered, if that was remembered.
local function answer_of(known) return string.match(known, '^%d+ %d+ (.*)$') end

-- This call counts; answer: what it is answered, if the same is to be answered again. known, first, last and look are what a<session>, rf, rl and rt were.
-- It looks at the first two sessions, forgets the idle ones and makes the others the last. If it finds none, the next look is later the fewer there
-- are: all are seen within half a minute, and few calls look where all are in use.
local function remember(known, first, last, look, answer)
    local idle = 60000
    local function put(field, value) set[#set + 1], set[#set + 2] = field, value end
    local function write_session(name, number, rest) put('a' .. name, string.format('%.0f %.0f%s', number, now, rest)) end
    local from, to = tonumber(first or 1), tonumber(last or 0)
    local function append(name)
        to = to + 1
        put('r' .. to, name)
    end
    write_session(session, sequence, answer and ' ' .. answer or '')
    local count, pause = to - from + 1, tonumber(look or 0) - now
    -- A look that is further away than it can be: the clock was set back.
    if count > (known and 1 or 0) and (pause <= 0 or pause > idle) then
        local names, found = call('HMGET', key, 'r' .. from, 'r' .. from + 1), false
        if count == 1 then names[2] = nil end
        local texts = call('HMGET', key, 'a' .. names[1], 'a' .. (names[2] or ''))
        for i, name in ipairs(names) do
            local number, heard, rest = string.match(texts[i], '^(%d+) (%d+)(.*)$')
            del[#del + 1] = 'r' .. from
            from = from + 1
            if name ~= session and now - heard > idle then
                del[#del + 1], found = 'a' .. name, true
            else
                append(name)
                -- The clock was set back: its minute begins anew.
                if name ~= session and heard + 0 > now then
                    write_session(name, number, rest)
                    found = true
                end
            end
        end
        if not found then put('rt', string.format('%.0f', now + math.floor(idle / count))) end
    end
    if not known then append(session) end
    if from ~= tonumber(first) then put('rf', from) end
    if to ~= tonumber(last) then put('rl', to) end
end
