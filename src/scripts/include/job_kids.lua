-- The children of a job, however many: the names of the first ones stand in links of its type, in k<id>, with ' +' behind them if there are more. These are in
--   kids:<id>  list of a type: '<type>/<id> ...' in each element
-- Needs call.
local largest_text = 2048

local function has_more_kids(names) return string.byte(names, -1) == 43 end

-- Adds names to such a text. What has no room there, in elements of the list, comes back as the second.
local function with_kids(text, names)
    local first, size, taken, pieces = 1, #text, {}, {}
    if text ~= '' then taken[1] = text end
    if not has_more_kids(text) then
        while names[first] and size + #names[first] < largest_text do
            taken[#taken + 1], size = names[first], size + #names[first] + 1
            first = first + 1
        end
        if names[first] then taken[#taken + 1] = '+' end
    end
    while names[first] do
        local piece, length = {}, 0
        while names[first] and length < largest_text do
            piece[#piece + 1], length = names[first], length + #names[first] + 1
            first = first + 1
        end
        pieces[#pieces + 1] = table.concat(piece, ' ')
    end
    return table.concat(taken, ' '), pieces
end
