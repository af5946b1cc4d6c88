-- Limits that belong to the queue, and not to whoever calls: what a caller has set holds for its calls and is kept in the hash, in field o, for those who
-- have not (-1); else the defaults (queue_options.hpp). -2: none in this call, which is not kept. Needs queue_once, and as local settings what the hash has.
local function settle_settings()
    local known = {string.match(settings or '', '^(%d*) (%d*) (%d*) (%d*) (%d*)$')}
    local is_new = false
    local function effective(i, own, default)
        local stored = tonumber(known[i])
        if own >= 0 and own ~= stored then known[i], is_new = string.format('%.0f', own), true end
        known[i] = known[i] or ''
        if own == -2 then return 0 end
        return own >= 0 and own or stored or default
    end
    most_deliveries, most_length = effective(1, most_deliveries, 20), effective(2, most_length, 0)
    most_dead, most_dead_bytes = effective(3, most_dead, 0), effective(4, most_dead_bytes, 0)
    dead_retention = effective(5, dead_retention, 1209600000)
    if is_new then was.settings = table.concat(known, ' ') end  -- kept with whatever is written next; touch() sees to it that something is
    -- As long as there may be dead letters that they are about.
    if (is_stale or (is_new and was[3] - now < dead_retention / 2)) and call('EXISTS', key .. ':dead') == 1 then
        kept, is_stale = math.max(kept, dead_retention), true
    end
end
if settings or most_deliveries + most_length + most_dead + most_dead_bytes + dead_retention ~= -5 then
    settle_settings()
else
    most_deliveries, most_length, most_dead, most_dead_bytes, dead_retention = 20, 0, 0, 0, 1209600000
end
