-- What survey reads of the jobs of one type, as survey_things does, by the rules of job_count: {'jobs', how many workers wait, jobs that wait, running,
-- 0, 0, of those that wait how many are put off, failed, how many wait for other jobs, 1 if the type is paused, else 0}. Needs call, now and most.
-- Its hash may be gone while jobs that ended are remembered.
local function read_jobs(key)
    local function size(part) return call('ZCARD', key .. part) end
    most = most - 2  -- it takes three times as long as others
    local listed, stale = call('LLEN', key .. ':ready'), tonumber(call('HGET', key .. ':stats', 'stale') or 0)
    local waiting, later, put_off, was = listed - math.max(math.min(stale, listed), 0) + size(':ranked'), size(':later'), 0, opened(call('HGET', key, 'v'))
    if later > 0 then put_off = later - call('ZCOUNT', key .. ':later', '-inf', own_time(was, now)) end
    return {'jobs', size(':waiting'), waiting + later, size(':held'), 0, 0, put_off, size(':failed'), size(':blocked'), is_paused(was) and 1 or 0}
end
