-- Reads claims in flight with the jobs that they hold, as many as fit into one answer.
--
-- uses    base, heads, claims
-- KEYS    1, 2: as base says.
-- ARGV    1: the time or ""; 2 and following: the claims.
-- answer  for each, until there are five hundred jobs: 0 where there is none; or the batch's row, when the lease
--         ends, the jobs, head and payload of each.
local answers, jobs = {}, 0
for n = 2, #ARGV do
  local found = claimed(ARGV[n])
  answers[#answers + 1] = found or 0
  jobs = jobs + (found and #found[3] or 1)
  if jobs >= 500 then
    break
  end
end
return answers
