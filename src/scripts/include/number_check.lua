-- For scripts that set something of a hold. Needs asked and deadline.
if not (asked and asked >= 1 and asked <= 2 ^ 53 and asked % 1 == 0 and deadline) then
    return redis.error_reply('LOCKSTEP_ARGUMENT number must be 1 to 2^53, deadline_ms a number')
end
