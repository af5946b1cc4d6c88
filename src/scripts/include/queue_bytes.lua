-- What one call reads and answers is bounded in bytes, too. Needs checks.
--   ARGV[4]  '<how many to take> <and so many more if there are> <bytes> <largest>': items of so many bytes together, the first always; of one that has
--            more than `largest` bytes, which its caller could not receive, only '!<its size>\n<its head>' is shown
local want, ahead, budget, largest = string.match(ARGV[4] or '', '^(%d+) (%d+) (%d+) (%d+)$')
want, ahead = want and whole(want, 0, 1000), want and whole(ahead, 0, 1000)
if not (want and ahead) then return refuse('want: <0 to 1000> <0 to 1000> <bytes> <largest>') end
budget, largest = budget + 0, largest + 0
