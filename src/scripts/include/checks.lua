-- A whole number within these bounds, or nil.
local function whole(text, least, most)
    local number = string.find(text, '^%d+$') and tonumber(text)
    return number and number >= least and number <= most and number or nil
end

local function refuse(what) return redis.error_reply('LOCKSTEP_ARGUMENT ' .. what) end
