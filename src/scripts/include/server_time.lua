-- The server's time in µs and in whole ms. Needs call.
local time = call('TIME')
local us = time[1] * 1000000 + time[2]
local now = (us - us % 1000) / 1000
