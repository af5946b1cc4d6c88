--[[ quorum_look: what one node knows of an election over several. Changes nothing.
  KEYS[1]  seat    string, the token of whoever holds it here
  KEYS[2]  leader  string, as in quorum_announce
  Returns  {token or '', left_ms of the seat, record or ''}
]]
return {redis.call('GET', KEYS[1]) or '', redis.call('PTTL', KEYS[1]), redis.call('GET', KEYS[2]) or ''}
