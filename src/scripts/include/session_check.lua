-- For scripts that count once however often they are sent. Needs session, sequence and deadline.
if not (sequence and sequence >= 1 and sequence <= 2 ^ 53 and sequence % 1 == 0 and string.find(session, '^%S+$') and deadline) then
    return redis.error_reply('LOCKSTEP_ARGUMENT session: no spaces, sequence: 1 to 2^53, deadline_ms: a number')
end
