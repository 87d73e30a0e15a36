-- Removes jobs from whatever place they are in.
--
-- uses    base, heads, writes, groups, places, claims
-- KEYS    1, 2: as base says.
-- ARGV    1: the time or ""; 2: 1 to remove held ones as well, else 0; 3: who and why, as two JSON texts, a comma
--         between; 4: the mark of batches that end; 5 and following: the jobs.
-- answer  for each: 1 removed, or its remembered ID forgotten; 0 not there; 2 held, and not removed.
local ids, gone, answers = {}, {}, {}
for n = 5, #ARGV do
  ids[n - 4] = ARGV[n]
end
local heads = fields(HEADS, ids)

local function release(claim, id)
  local state = state_of(claim)
  remember(claim, id, 'removed', false)
  if state then
    state.held, state.lost = state.held - 1, '1'
    end_if_empty(claim, state, false, ARGV[3], ARGV[4])
  end
end

for n = 1, #ids do
  local id = ids[n]
  local head = not gone[id] and parsed(heads[n])
  if head and head.place == 'a' and ARGV[2] == '0' then
    answers[n] = 2
  elseif head then
    local group = leave(id, head)
    drop(id)
    if head.place == 'a' then
      release(head.claim, id)
    end
    refresh(group)
    answers[n] = 1
  elseif heads[n] and not gone[id] then
    drop(id) -- nobody can read it
    answers[n] = 1
  else
    local forgotten_at = tonumber(call('ZSCORE', DONE, id) or nil)
    call('ZREM', DONE, id)
    answers[n] = forgotten_at and forgotten_at > NOW and 1 or 0
  end
  gone[id] = gone[id] or answers[n] == 1
end
finish()
return answers
