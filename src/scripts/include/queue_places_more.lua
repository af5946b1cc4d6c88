-- As queue_places.
--   later   sorted set: items that are put off, by the time when they are due      room   sorted set: who waits for room
--   dedup   hash: keys of items, and which items have them; of those that are done also until when they count, behind a space
--   recent  sorted set: keys of items that are done, and until when they count
local later, dedup, recent, room = key .. ':later', key .. ':dedup', key .. ':recent', key .. ':room'
