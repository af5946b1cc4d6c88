-- What the scripts of broadcast events, latches and barriers begin with. Needs checks and rules.
local call, key = redis.call, KEYS[1]
local retention, channel = string.match(rules, '^%d+ (%d+) (.+)$')
retention = retention and whole(retention, 1, 1e12)
if not retention then return refuse('rules: <window_ms> <retention_ms> <channel>') end
