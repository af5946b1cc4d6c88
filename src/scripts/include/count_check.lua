-- For scripts that say how many permits there are. Needs asked.
if not (asked and asked >= 0 and asked <= 1e12 and asked % 1 == 0) then
    return redis.error_reply('LOCKSTEP_ARGUMENT count must be 0 to 10^12')
end
