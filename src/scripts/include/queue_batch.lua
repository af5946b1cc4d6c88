-- The number of what this call brings: larger than all before it. Needs queue_once.
local batch = (was[2] or 0) + 0 < us_text + 0 and us_text or string.format('%.0f', was[2] + 1)
