-- What the scripts of broadcast events, latches and barriers begin with. Needs rules.
local call, key = redis.call, KEYS[1]

-- A whole number within these bounds, or nil.
local function whole(text, least, most)
    local number = string.find(text, '^%d+$') and tonumber(text)
    return number and number >= least and number <= most and number or nil
end

local function refuse(what) return redis.error_reply('LOCKSTEP_ARGUMENT ' .. what) end

local retention, channel = string.match(rules, '^%d+ (%d+) (.+)$')
retention = retention and whole(retention, 1, 1e12)
if not retention then return refuse('rules: <window_ms> <retention_ms> <channel>') end
