-- For scripts that give a lease another length. Needs ttl.
if not (ttl and ttl >= 1 and ttl <= 1e12 and ttl % 1 == 0) then
    return redis.error_reply('LOCKSTEP_ARGUMENT ttl_ms must be 1 to 10^12')
end
