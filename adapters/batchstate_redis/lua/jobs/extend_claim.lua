-- Sets when a claim's lease ends: one write, unless it ends before the instant that a sweep looks at the claim.
--
-- uses    base, heads, claims
-- KEYS    1, 2: as base says.
-- ARGV    1: the time or ""; 2: the claim; 3: for how long from now, in milliseconds.
-- answer  0 where it holds nothing; or when the lease ends, how many jobs it holds, and the jobs lost.
local claim, until_ = ARGV[2], NOW + tonumber(ARGV[3])
local state = state_of(claim)
if not state then
  return 0
end
state.expires = until_
write_state(claim, state)
if until_ < tonumber(call('ZSCORE', LEASES, claim)) then
  call('ZADD', LEASES, until_, claim)
end
local lost = {}
if state.lost == '1' then
  local ids = members_of(claim)
  for n = 1, #ids do
    local outcome = call('HGET', ROOT .. 'a:' .. ids[n], claim)
    if outcome == 'swept' or outcome == 'removed' then
      lost[#lost + 1] = ids[n]
    end
  end
end
return {int(until_), state.held, lost}
