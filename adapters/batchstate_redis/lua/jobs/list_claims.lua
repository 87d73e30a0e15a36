-- Reads when claims in flight and their jobs lapse, as many as fit into one answer.
--
-- uses    base, heads, claims
-- KEYS    1, 2: as base says.
-- ARGV    1: the time or ""; 2 and following: the claims.
-- answer  for each, until there are a thousand jobs: 0 where there is none; or when the lease ends, and each
--         job's ID and when it lapses.
local answers, jobs = {}, 0
for n = 2, #ARGV do
  local state = state_of(ARGV[n])
  local leases = {}
  if state then
    each_held(ARGV[n], function(id, head)
      leases[#leases + 1] = id
      leases[#leases + 1] = int(deadline_of(state, head))
    end)
  end
  answers[#answers + 1] = state and {int(state.expires), leases} or 0
  jobs = jobs + 1 + #leases / 2
  if jobs >= 1000 then
    break
  end
end
return answers
