-- One barrier is one hash, read here. Needs gate_rules and hold.
--   g  the open generation, which gathers arrivals: the server's time in µs at first, so that a new hash repeats no number; then one more
--   p  parties it was created for, f  the hold whose arrival did that     n  how many must arrive now, d  how many of them drop out then
--   a  how many arrived           r  the hold that runs the completion step, '' before
--   e  no lease of these arrivals ends before, '' if there are none: from then on somebody looks through them
--   o  how the generations before ended, the latest first: c(omplete) or b(roken); 100 at most
--   w  clients that came when all had arrived and the step was being run: they want to be told when the next generation is open
--   h<hold>  '<generation> <end> <ttl>' of an arrival, end 0 if it has no lease; kept until three more generations ended
local format, own = 'barrier 1', 'h' .. hold
local was = call('HMGET', key, 'v', 'g', 'p', 'n', 'a', 'd', 'r', 'e', 'o', 'f', own, 'w')
