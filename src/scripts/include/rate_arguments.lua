-- What the scripts of rate limiters begin with.
local call = redis.call

-- The argument as a whole number within these bounds, or nil.
local function whole(text, least, most)
    local number = tonumber(text)
    return number and number >= least and number <= most and number % 1 == 0 and number or nil
end

local time = call('TIME')
local us = time[1] * 1000000 + time[2]
