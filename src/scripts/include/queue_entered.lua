-- Puts them there, and tells who waits. Needs queue_enter and queue_offer, queue_tell and queue_tell_time.
touch(true)
if accepted < count and ARGV[4] ~= '' then
    call('HSET', key, 'f', 1)
    call('ZADD', room, 'NX', us_text, ARGV[4])
    call('PEXPIRE', room, 300000)
end
in_chunks('RPUSH', ready, plain)
in_chunks('ZADD', ranked, by_rank)
in_chunks('ZADD', later, put_off)
if #put_off > 0 then lower(earliest) end
for name, id in pairs(keys) do
    call('HSET', dedup, name, id)
    call('ZREM', recent, name)
end
if next(keys) then
    call('PERSIST', dedup)
    call('PERSIST', recent)
end
remember(done)
if #plain + #by_rank > 0 then told = tell(waiting, 'r', math.min(#plain + #by_rank / 2, 8)) end
if #put_off > 0 then tell_time(waiting, earliest) end
