-- Settles jobs, each by itself on its verdict.
--
-- uses    base, groups, places, claims
-- KEYS    1, 2: as base says.
-- ARGV    1: the time or "";
--         2: the claim; 3: for how long the IDs of done jobs are remembered, in milliseconds;
--         4: who and why, as two JSON texts, a comma between; 5: the mark of the batch, should it end;
--         then for each job, 4: job, verdict (complete, retry, delay, dead, release), reason, delay in
--         milliseconds.
-- answer  what became of each (completed, retried, delayed, dead, released, lost), in order, a comma
--         between; 1 if the claim has ended, by this or before, else 0.
local claim, keep = ARGV[2], tonumber(ARGV[3])
local ids, n = {}, 0
for at = 6, #ARGV, 4 do
  n = n + 1
  ids[n] = ARGV[at]
end
local state = state_of(claim, true)
local live = is_live(claim, state and state.held <= n)
local heads, answers, settled, freed = fields(HEADS, ids), {}, {}, 0
local forgotten_at = int(NOW + keep)

-- Settles by a verdict; answers what became of the job.
local function settle(id, head, verdict, reason, delay)
  if verdict == 'complete' then
    drop(id)
    if keep > 0 then
      later(writes('ZADD', 'done'), forgotten_at, id)
    end
    return 'completed'
  end
  local outcome = verdict == 'delay' and 'delayed' or verdict == 'release' and 'released' or 'retried'
  if verdict == 'retry' then
    head.attempts = int(tonumber(head.attempts) + 1)
  end
  if verdict == 'dead' or (verdict == 'retry' and tonumber(head.attempts) >= tonumber(head.most)) then
    die(head, reason)
    outcome = 'dead'
  else
    if verdict == 'retry' then
      head.error = reason
    end
    wait(head, verdict == 'release' and 0 or delay)
  end
  enter(id, head)
  return outcome
end

-- Answers whether a job may be settled that the claim does not hold: a sweep took it back, and it waits.
local function judge(id, head, verdict)
  local outcome = settled[id] or call('HGET', ROOT .. 'a:' .. id, claim)
  if outcome and outcome ~= '' and outcome ~= 'swept' and outcome ~= 'removed' then
    return outcome
  end
  if outcome == 'swept' and head and head.claim == claim and head.place == 'w' and verdict ~= 'release' then
    return nil
  end
  return 'lost'
end

-- Most jobs are held and done, in a group without a ceiling: such a one only goes.
local begin, associations = '1\ta\t' .. claim .. '\t', ROOT .. 'a:'
local gone, done = writes('HDEL', 'jobs'), writes('ZADD', 'done')
local last_name, last_group, from_active
local function complete(id, head)
  local name = head:match('^([^\t]*)\t%d', #begin + 1)
  if name ~= last_name then
    last_name, last_group = name, name and group_of(name)
    from_active = name and writes_of(last_group, 'ZREM', 'active:')
  end
  if not name or last_group.ceiling < math.huge then
    return false
  end
  later(from_active, id)
  later(gone, id, payload_of(id))
  if keep > 0 then
    later(done, forgotten_at, id)
  end
  call('HSET', associations .. id, claim, 'completed')
  freed = freed + 1
  settled[id] = 'completed'
  return true
end

local function settle_one(n)
  local at, id = 4 * n + 2, ids[n]
  local verdict = ARGV[at + 1]
  local text = heads[n]
  if live and verdict == 'complete' and text and text:find(begin, 1, true) == 1 and not settled[id]
    and complete(id, text) then
    return 'completed'
  end
  local head = not settled[id] and parsed(heads[n])
  local is_held = head and head.place == 'a' and head.claim == claim
  local outcome = not is_held and judge(id, head, verdict) or nil
  if not outcome then
    local group = leave(id, head)
    freed = freed + (is_held and 1 or 0)
    outcome = settle(id, head, verdict, ARGV[at + 2], tonumber(ARGV[at + 3]))
    if group.is_changed then
      refresh(group)
      group.is_changed = false
    end
    remember(claim, id, outcome, live)
    settled[id] = outcome
  end
  return outcome
end

for n = 1, #ids do
  answers[n] = settle_one(n)
end
local has_ended = not state
if state and (freed > 0 or state.held == 0) then
  state.held = state.held - freed
  has_ended = end_if_empty(claim, state, false, ARGV[4], ARGV[5])
end
finish()
return {table.concat(answers, ','), has_ended and 1 or 0}
