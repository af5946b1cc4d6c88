-- The number of what this call brings: larger than all before it. Needs queue_once.
local batch = us_text
if was[2] >= us then batch = string.format('%.0f', was[2] + 1) end
was[2] = math.max(was[2] + 1, us)
