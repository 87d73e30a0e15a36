-- Reads jobs.
--
-- uses    base, heads, claims
-- KEYS    1, 2: as base says.
-- ARGV    1: the time or ""; 2 and following: the jobs.
-- answer  for each: its head or "", its payload or "", when the lease of the claim that holds it ends or "".
local ids = {}
for n = 2, #ARGV do
  ids[n - 1] = ARGV[n]
end
local total = #ids
for n = 1, total do
  ids[total + n] = payload_of(ids[n])
end
local heads = fields(HEADS, ids)
local answers, states = {}, {}
for n = 1, total do
  local claim = heads[n] and heads[n]:match('^1\ta\t([^\t]*)\t')
  if claim and states[claim] == nil then
    local state = state_of(claim)
    states[claim] = state and int(state.expires) or ''
  end
  answers[3 * n - 2], answers[3 * n - 1] = heads[n] or '', heads[total + n] or ''
  answers[3 * n] = claim and states[claim] or ''
end
return answers
