-- Schedules of jobs. Needs KEYS[1] to KEYS[3].
--   crons  sorted set: ids by the time, ms, when they are due next; inf: paused
--   specs  hash: id -> '<version> <type> <missed> <late_ms> <priority> <window_ms> <size of its key>[<rule>] <zone>\t<expression>\n<options>\n<key><payload>'
--   last   hash: id -> '<due_ms> <id of the job in the queue of its type>'
-- The version grows with every change, so that what was reckoned from an older one does not count.
local crons, specs, last = KEYS[1], KEYS[2], KEYS[3]
