-- Tells the first that still waits: who calls will not be there to look, after the claim window, whether the offer was taken. Needs queue and
-- next_in_line.
if head then
    local second = node(head)[1]
    tell(string.match(second, '^[^.]+'), second)
end
