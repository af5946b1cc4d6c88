-- What scripts that change something once begin with. Needs checks, key and rules = '<retention ms> <PUBLISH or SPUBLISH>'.
local call = redis.call
local retention, publish = string.match(rules, '^(%d+) (S?PUBLISH)$')
retention = retention and whole(retention, 1, 1e12)
-- What counted is remembered for so long at least: longer than any call is sent again.
local memory = 120000
retention = retention and math.max(retention, memory)
local sequence, deadline = whole(ARGV[2], 1, 1e15), whole(ARGV[3], 0, 1e15)
if not (retention and sequence and deadline and string.find(session, '^%S+$')) then
    return refuse('session: no spaces, sequence: at least 1, deadline_ms: a time, rules: <retention_ms> <PUBLISH or SPUBLISH>')
end
