-- What is done with the items of a queue besides; with those of jobs it is more (job_work, job_judge). Needs queue_rules and as local dead.
local takes_ms = {later = true, extend = true, unused = false}  -- what can be said of one
local function is_exhausted(_, deliveries) return deliveries >= most_deliveries end
local function bury(entry, deliveries, reason) call('XADD', dead, 'MAXLEN', most_dead, '*', 'n', deliveries, 'why', reason, 'item', entry) end
local function shown(entry) return entry end
local function ended() end
local function judged() end
local function extended() end
