-- What the scripts of rate limiters begin with: how they call (try: and go on after an error), and the server's time in µs.
local call, try = redis.call, redis.pcall
local time = call('TIME')
local us = time[1] * 1000000 + time[2]
