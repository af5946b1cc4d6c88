-- What the scripts of queues begin with. Needs checks. The rules are packed, since as words they would take as long to read as three commands (queue_wire.cpp).
local call, key = redis.call, KEYS[1]
if #ARGV[1] < 58 or not string.find(ARGV[1], '^[PS]') then
    return refuse('rules: P|S, <retention_ms> <lease_ms> <max_deliveries> <max_dead> <max_length> <dead_retention_ms> <max_dead_bytes> as doubles, <channel>')
end
local kind, retention, lease, most_deliveries, most_dead, most_length, dead_retention, most_dead_bytes, rest = struct.unpack('<c1ddddddd', ARGV[1])
local publish, channel = kind == 'S' and 'SPUBLISH' or 'PUBLISH', string.sub(ARGV[1], rest)
