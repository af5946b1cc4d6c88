-- What the scripts of queues begin with. Needs checks, and besides: which fields are to be read behind the first seven, of f, k, h, g in this order.
-- was: 1 v, 2 l, 3 x, 4 t, 5 n, 6 s, 7 c, 8 f, 9 k, 10 h, 11 g
--   v  format    l  number of the last batch    x  when this hash goes, ms    f  somebody waits for room    k  keys are remembered for a while
--   t  at this time, ms, one of those who wait will look again; gone, or 0, when one of them is told of something or leaves
--   h  others wait for jobs of this queue, and it cannot be seen by their ids
--   n  before this time, ms, no lease ends and nothing that is put off is due; without it that is not known
--   g  before this time, ms, jobs that completed are not looked at again: most of them could not be forgotten
--   s  by how much the queue's time is ahead of the server's, ms    c  the queue's time when something was written here
-- The lists, sets and hashes of items stay as long as there are items; this hash goes when nobody uses the queue for the retention, and some minutes.
local call, key, format = redis.call, KEYS[1], 'queue 1'

local publish, retention, lease, most_deliveries, most_dead, most_length, channel =
    string.match(ARGV[1], '^(S?PUBLISH) (%d+) (%d+) (%d+) (%d+) (%d+) (.+)$')
if not publish then
    return refuse('rules: PUBLISH|SPUBLISH <retention_ms> <lease_ms> <max_deliveries> <max_dead> <max_length> <channel>')
end
retention, lease, most_deliveries, most_length = retention + 0, lease + 0, most_deliveries + 0, most_length + 0
local was = call('HMGET', key, 'v', 'l', 'x', 't', 'n', 's', 'c', unpack(besides))
if was[1] ~= format and (was[1] or call('EXISTS', key) == 1) then
    return redis.error_reply('LOCKSTEP_FORMAT this is not in the format "' .. format .. '"')
end
