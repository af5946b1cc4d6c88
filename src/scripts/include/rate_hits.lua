-- What the scripts of windows begin with: how much is allowed, and what is answered.
local cost, limit, per = tonumber(ARGV[1]), tonumber(ARGV[3]), tonumber(ARGV[4])
if not (cost and limit and per and cost >= 1 and cost <= limit and per >= 1) then
    return redis.error_reply('LOCKSTEP_ARGUMENT cost: 1 to limit, per: in us')
end
local answers, writes = {1, us}, ARGV[2] ~= 'look'
