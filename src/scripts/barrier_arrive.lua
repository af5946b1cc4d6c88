--[[ barrier_arrive: arrive in the open generation; the last one of the parties ends it. The first arrival creates the barrier. The same
  hold again gets the answer for the generation it arrived in. An arrival is a lease: if it runs out, the generation is broken.
  KEYS[1]  barrier          hash
  ARGV[1]  hold             id of this arrival: '<client>.<n>', no spaces
  ARGV[2]  generation       the open one, so that a command which comes late can't count in another; 0 if there is no such barrier
  ARGV[3]  parties          how many must arrive, an integer from 1 to 2000; fixed by the first arrival
  ARGV[4]  ttl_ms           length of the lease, an integer from 1 to 10^12
  ARGV[5]  deadline_ms      the server's time after which this must not run any more
  ARGV[6]  with_completion  1: the last one is told to run a completion step, then to call barrier_finish; 0: there is none
  ARGV[7]  dropping         1: do not wait, and from the next generation on one less must arrive; 0: stay
  ARGV[8]  rules            as in broadcast_set
  Returns  {'waiting', generation, arrived, look_again_ms (0: nobody has a lease), now_ms} | {'complete', generation, now_ms}
           | {'run', generation, now_ms} | {'broken', generation, now_ms}; the next generation is one more
           | {'late', now_ms}, {'behind', open generation or 0, now_ms}: sent for this generation it has not arrived, nor will it
           | {'full', generation, look_again_ms, now_ms}: as 'behind'; all have arrived, the next generation opens after their step, and this
           client is told then
           | {'forgotten', open generation, now_ms}: the same if it was sent only once, else it may have arrived
  Errors   LOCKSTEP_ARGUMENT, LOCKSTEP_FORMAT, LOCKSTEP_COUNT <its parties, or 0 when all dropped out> (this call wrote nothing)
]]
local hold, rules = ARGV[1], ARGV[8]
--#include checks
--#include gate_rules
local generation, parties, ttl = whole(ARGV[2], 0, 1e16), whole(ARGV[3], 1, 2000), whole(ARGV[4], 1, 1e12)
local deadline, completion, dropping = whole(ARGV[5], 0, 1e15), whole(ARGV[6], 0, 1), whole(ARGV[7], 0, 1)
if not (generation and parties and ttl and deadline and completion and dropping and string.find(hold, '^[^ .]+%.[^ ]+$')) then
    return refuse('hold: <client>.<n>, parties: 1 to 2000, ttl_ms: 1 to 10^12, with_completion, dropping: 0 or 1')
end
--#include barrier_read
--#include gate_state
--#include barrier_state
if was[1] and was[3] + 0 ~= parties then return redis.error_reply('LOCKSTEP_COUNT ' .. was[3] .. ' parties meet there, not ' .. parties) end
settle()
if joined then return answer(joined) end
if was[1] and needed == 0 then return redis.error_reply('LOCKSTEP_COUNT 0 parties are left of ' .. parties .. ': all dropped out') end
if generation ~= open then
    -- With generation 0 only the first arrival ever counted.
    local forgotten = generation == 0 and was[10] == hold or generation > 0 and generation < open - 3
    return {forgotten and 'forgotten' or 'behind', open, now}
end
if now > deadline then return {'late', now} end
if runner ~= '' then
    local client = string.match(hold, '^[^.]+')
    local is_known, is_far = string.find(outside, ' ' .. client .. ' ', 1, true), bound > now + ttl
    if not is_known then outside = outside .. client .. ' ' end
    if is_far then bound = now + ttl end  -- the clock may have been set back, and all who arrived be dead: somebody looks then
    if is_far or not is_known then commit() end
    return {'full', open, bound - now, now}
end
if open == 0 then
    open, needed = us, parties
    set = {'v', format, 'p', parties, 'f', hold}
end
arrived, dropped, joined = arrived + 1, dropped + dropping, open
local last, ends = arrived == needed, now + ttl
if last and completion == 1 then runner = hold elseif dropping == 1 then ends = 0 end
if ends > 0 then bound = math.min(bound or ends, ends) end
write_arrival(hold, open, ends, ttl)
if last and completion == 0 then close('c', hold) else commit(ttl) end
return answer(joined)
