-- The items of a queue are what they are; those of jobs are more (job_enter).
local function entered(_, payload) return payload end
