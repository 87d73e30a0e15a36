-- Reads what became of jobs in one claim.
--
-- uses    base
-- KEYS    1, 2: as base says.
-- ARGV    1: the time or ""; 2: the claim; 3 and following: the jobs.
-- answer  for each: the outcome in its association, "" where there is none.
local answers = {}
for n = 3, #ARGV do
  answers[n - 2] = call('HGET', ROOT .. 'a:' .. ARGV[n], ARGV[2]) or ''
end
return answers
