-- Reading no more than so many bytes. Needs as locals budget, and largest: what the caller can receive, which is no less.
local bytes_read = 0  -- by all that follows

-- Reads `count` values in growing steps until they have more bytes than the budget. read(from, n) returns the next n (with their scores: stride 2).
-- Returns them, and whether there may be more.
local function read_within(count, stride, read)
    local values, bytes, found = {}, 0, 0
    while found < count do
        if bytes > budget then
            bytes_read = bytes_read + bytes
            return values, true
        end
        -- As many as fit if the next ones are like those before.
        local n = found == 0 and 2 or math.min(8 * found, math.ceil((budget - bytes + 1) * found / math.max(bytes, 1)))
        n = math.min(n, count - found)
        local more = read(found, n)
        for i = 1, #more do
            values[#values + 1] = more[i]
            bytes = bytes + (more[i] and #more[i] or 0)
        end
        if #more < n * stride then break end
        found = found + n
    end
    bytes_read = bytes_read + bytes
    return values, false
end

-- How many of these, from `first` on, are within the budget: the first always.
local function count_within(values, first)
    if bytes_read <= budget then return #values - first + 1 end
    local bytes = 0
    for i = first, #values do
        local size = #values[i]
        bytes = bytes + (size > largest and 0 or size)
        if bytes > budget and i > first then return i - first end
    end
    return #values - first + 1
end

-- What its caller is shown of an item.
local function receivable(text)
    if not text or #text <= largest then return text end
    local head = string.match(text, '^[^\n]*\n')
    return '!' .. #text - #head .. '\n' .. head
end
