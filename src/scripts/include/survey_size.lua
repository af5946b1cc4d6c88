-- How much survey sends: 32 KiB of a text, 128 KiB of an object, and 256 KiB and one more object in all. Needs nothing.
local largest, largest_object, left = 32768, 131072, 262144  -- bytes

-- How many bytes it has; nothing: too many to be sent.
local function size_of(found)
    local size = 0
    for _, text in ipairs(found) do
        local bytes = type(text) == 'string' and #text or 8
        if bytes > largest then return end
        size = size + bytes
    end
    return size <= largest_object and size or nil
end
