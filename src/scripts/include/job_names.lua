-- What records and links say of jobs that job_add adds. Needs job_drafts.
local function name_of(job) return job.side.type .. '/' .. job.id end
local function list_of(jobs_of)
    local names = {}
    for n, job in ipairs(jobs_of) do names[n] = name_of(job) end
    return names
end
local function names_of(list) return table.concat(list_of(list), ' ') end
-- A job with a single name or parents has its priority in links.
local function tail_of(job)
    if job.rule then return '\ts\n' end
    return (#job.parents > 0 or job.priority == '0') and '\n' or '\t\t' .. job.priority .. '\n'
end
