-- Who waits, by client. Needs gate_state. Each is told once and then forgotten, heard or not: it asks again, and that registers it again
-- if it still has to wait.
--   c<client>  the largest n of its holds that asked     w  somebody asked since all were told (an event's set looks no further without)
local function tell_all()
    local fields, clients = {'w'}, {}
    for _, field in ipairs(call('HKEYS', key)) do
        if string.sub(field, 1, 1) == 'c' then
            fields[#fields + 1] = field
            clients[string.sub(field, 2)] = true
        end
    end
    remove(fields)
    tell(clients)
end
