-- What a pull answers, and remembers. Needs queue_take, queue_wait, queue_keys; want, name, look and waits.
if is_short() and name ~= '' then
    waits = 1
    look = wait_from_now(waiting, name, math.min(look, soonest))
end
answer[1] = ARGV[2] .. ' ' .. server_text .. string.format(' %.0f %d,%d\n%s\n%s', math.max(look - now, 1), left and 2 or waits, dropped_letters, table.concat(lost, ' '), table.concat(tokens, ' '))
if forgot then limit_keys(dedup, recent) end
remember(answer[1])
if soonest < 1e15 then lower(soonest) end
