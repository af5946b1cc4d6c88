-- Where the items of a queue are, and who waits for them: of these most calls need all. A key that is given costs three times as much as one that is put
-- together here, so that scripts touch more than they are given; one of those is never there, as in job_rules. Needs key.
--   ready   list: items of priority 0                                      held   sorted set: tokens of what is held, by the end of its lease
--   ranked  sorted set: items of other priorities, the largest first       items  hash: what is held, by its token
--   waiting  sorted set: who waits for items
local ready, ranked, waiting, held, items = key .. ':ready', key .. ':ranked', key .. ':waiting', key .. ':held', key .. ':items'
