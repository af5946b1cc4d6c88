-- What the scripts of windows end with: each key is settled for itself, or all of them or none. `look(key)` says all that `settle` needs, at
-- first how long to wait (0: the hit fits); or nothing but an error.
if ARGV[2] == 'each' then
    for i, key in ipairs(KEYS) do settle(i, true, look(key)) end
    return answers
end
local plans = {}
for i, key in ipairs(KEYS) do
    plans[i] = {look(key)}
    if type(plans[i][1]) == 'table' then return plans[i][1] end
    if plans[i][1] > 0 then answers[1] = 0 end
end
for i = 1, #KEYS do settle(i, ARGV[2] == 'all' and answers[1] == 1, unpack(plans[i], 1, 9)) end
return answers
