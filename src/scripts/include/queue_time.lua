-- The server's time: in µs and in ms as text, since numbers of that size are dear to write, and in ms. Needs call.
local time = call('TIME')
local us_text = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))
local server_text = string.sub(us_text, 1, -4)
local us = us_text + 0
local now = (us - us % 1000) / 1000
