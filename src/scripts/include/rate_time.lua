-- What the scripts of rate limiters begin with: the server's time in µs.
local call, try = redis.call, redis.pcall
local time = call('TIME')
local us = time[1] * 1000000 + time[2]
