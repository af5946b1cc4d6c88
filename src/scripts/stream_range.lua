--[[ stream_range: entries in order, as many as fit in a reply. Changes nothing.
  KEYS[1]  stream   stream
  ARGV[1]  command  'XRANGE', or 'XREVRANGE' for the reverse order
  ARGV[2]  from     an id, or '(' and an id, or '-' or '+'
  ARGV[3]  to       the same
  ARGV[4]  count    how many at most, an integer of 1 to 1000
  ARGV[5]  budget   how many bytes of entries at most, but one entry in any case
  ARGV[6]  limit    an entry of more bytes is not sent
  Returns  {1 (there may be more) | 0, {id, {field, value, ...} or its size}, ...}
  Errors   LOCKSTEP_ARGUMENT, or what the command says
]]
local count, left, limit, from = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[2]
if not count or count < 1 or count > 1000 or (ARGV[1] ~= 'XRANGE' and ARGV[1] ~= 'XREVRANGE') then
    return redis.error_reply('LOCKSTEP_ARGUMENT command: XRANGE or XREVRANGE; count: 1 to 1000')
end
local found, bytes, step = {1}, 0, 4
while #found <= count do
    local wanted = math.min(step, count + 1 - #found)
    local entries = redis.call(ARGV[1], KEYS[1], from, ARGV[3], 'COUNT', wanted)
    for _, entry in ipairs(entries) do
        local size = 0
        for _, text in ipairs(entry[2]) do size = size + #text + 16 end
        if size > limit then
            entry[2] = size
        elseif bytes + size > left and #found > 1 then
            return found
        else
            bytes = bytes + size
        end
        found[#found + 1] = entry
        from = '(' .. entry[1]
    end
    if #entries < wanted then
        found[1] = 0
        break
    end
    -- About as many as still fit, by what those had that came.
    step = math.max(1, math.min(100, math.floor((left - bytes) / (bytes / (#found - 1) + 1))))
end
return found
