--[[ queue_letters: a page of the dead letters of a queue, the oldest first. Changes nothing.
  KEYS[1]  dead     stream
  ARGV[1]  after    the id of a letter: only those behind it; '': from the first on
  ARGV[2]  count    how many at most, 1 to 1000
  ARGV[3]  budget   how many bytes of items at most; the first letter always
  ARGV[4]  largest  of an item with more bytes only '!<its size>\n<its head>' is shown
  Returns  {id, deliveries, reason, item, id, ...}
  Errors   LOCKSTEP_ARGUMENT
]]
local call = redis.call
--#include checks
local count, budget, largest = whole(ARGV[2], 1, 1000), tonumber(ARGV[3]), tonumber(ARGV[4])
if not (count and budget and largest and string.find(ARGV[1], '^[%d-]*$')) then return refuse('after: an id, count: 1 to 1000, budget, largest') end
--#include read_within
local last, page = ARGV[1], {}
local letters = read_within(count, 4, function(_, n)
    local some = {}
    for _, letter in ipairs(call('XRANGE', KEYS[1], last == '' and '-' or '(' .. last, '+', 'COUNT', n)) do
        local fields = letter[2]
        last = letter[1]
        for _, text in ipairs({last, fields[2], fields[4], fields[6]}) do some[#some + 1] = text end
    end
    return some
end)
local items = {}
for i = 4, #letters, 4 do items[i / 4] = letters[i] end
for i = 1, #items > 0 and 4 * count_within(items, 1) or 0 do page[i] = i % 4 == 0 and receivable(letters[i]) or letters[i] end
return page
