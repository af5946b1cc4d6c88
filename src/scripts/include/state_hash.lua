-- The hash at key: was[1] is its field v, which names its kind and format. Goes on only if there is no such hash, or it is of that format.
-- Needs call, key, format and was.
if was[1] ~= format and (was[1] or call('EXISTS', key) == 1) then
    return redis.error_reply('LOCKSTEP_FORMAT this is not in the format "' .. format .. '"')
end
