-- Sets when one held job's own lease ends, unless it ends later already.
--
-- uses    base, heads, claims
-- KEYS    1, 2: as base says.
-- ARGV    1: the time or ""; 2: the claim; 3: the job; 4: for how long from now, in milliseconds.
-- answer  when the job's lease ends, as a number; or "=" and what became of it in this claim; or "" where it
--         never was the claim's.
local claim, id = ARGV[2], ARGV[3]
local state, head = state_of(claim), parsed(call('HGET', HEADS, id))
if not state or not head or head.place ~= 'a' or head.claim ~= claim then
  local outcome = call('HGET', ROOT .. 'a:' .. id, claim)
  return outcome and '=' .. outcome or ''
end
head.when = int(math.max(NOW + tonumber(ARGV[4]), tonumber(head.when) or 0))
call('HSET', HEADS, id, written(head))
if state.extended == '0' then
  state.extended = '1'
  write_state(claim, state)
end
return int(deadline_of(state, head))
