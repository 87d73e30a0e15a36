-- Settles jobs, each by itself on its verdict.
--
-- uses    base, claims
-- KEYS    1, 2: as base says.
-- ARGV    1: the time or "";
--         2: the claim; 3: for how long the IDs of done jobs are remembered, in milliseconds;
--         4: who and why, as two JSON texts, a comma between; 5: the mark of the batch, should it end;
--         6: how many jobs; then each job; then for each that is not complete, 4: its place among
--         them, verdict (retry, delay, dead, release), reason, delay in milliseconds.
-- answer  what became of each (completed, retried, delayed, dead, released, lost), in order, a comma
--         between; 1 if the claim has ended, by this or before, else 0.
local claim, keep, count = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[6])
local ids, verdicts, has_verdict = {unpack(ARGV, 7, 6 + count)}, {}, {}
for at = 7 + count, #ARGV, 4 do
  local n = tonumber(ARGV[at])
  verdicts[n], has_verdict[ids[n]] = at + 1, true
end
local state = state_of(claim, true)
local live = is_live(claim, state and state.held <= count)
local heads, answers, freed = count > 0 and call('HMGET', HEADS, unpack(ids)) or {}, {}, 0
local forgotten_at = int(NOW + keep)

-- Most jobs are held and done, in a group without a ceiling: such a one only goes. What the others are is seen below.
local begin, associations = '1\ta\t' .. claim .. '\t', ROOT .. 'a:'
local plain, leaving -- how the heads of such a group's jobs begin, and those that leave it
local gone, done, total, leaving_of, others = {}, {}, 0, {}, {}
for n = 1, count do
  local id, head = ids[n], heads[n] or ''
  if not plain or head:find(plain, 1, true) ~= 1 then
    local group = head:find(begin, 1, true) == 1 and head:match('^([^\t]*)\t%d', #begin + 1)
    local is_free = group and not default_ceiling
      and not (has_limits and call('HEXISTS', JOBS .. 'ceilings', group) == 1)
    plain = is_free and begin .. group .. '\t'
    if is_free then
      leaving = leaving_of[group] or {}
      leaving_of[group] = leaving
    end
  end
  if live and plain and not has_verdict[id] then
    leaving[#leaving + 1] = id
    gone[total + 1], gone[total + 2] = id, '\t' .. id
    done[total + 1], done[total + 2] = forgotten_at, id
    total = total + 2
    call('HSET', associations .. id, claim, 'completed')
    answers[n] = 'completed'
  else
    others[#others + 1] = n
  end
end
if total > 0 then
  call('HDEL', HEADS, unpack(gone))
  if keep > 0 then
    call('ZADD', DONE, unpack(done))
  end
  for group, names in pairs(leaving_of) do
    if #names > 0 then
      freed = freed + call('ZREM', JOBS .. 'active:' .. group, unpack(names))
    end
  end
end

if #others > 0 then
  -- uses    heads, writes, groups, places
  local settled = {}

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

  local function settle_one(n)
    local id, at = ids[n], verdicts[n]
    local verdict = at and ARGV[at] or 'complete'
    local head = not settled[id] and parsed(heads[n])
    local is_held = head and head.place == 'a' and head.claim == claim
    local outcome = not is_held and judge(id, head, verdict) or nil
    if not outcome then
      local group = leave(id, head)
      freed = freed + (is_held and 1 or 0)
      outcome = settle(id, head, verdict, at and ARGV[at + 1], at and tonumber(ARGV[at + 2]))
      if group.is_changed then
        refresh(group)
        group.is_changed = false
      end
      remember(claim, id, outcome, live)
      settled[id] = outcome
    end
    return outcome
  end

  for n = 1, #others do
    answers[others[n]] = settle_one(others[n])
  end
  finish()
end

for group in pairs(leaving_of) do
  if not (has_limits and call('HEXISTS', JOBS .. 'pauses', group) == 1) then
    forget_if_empty(group)
  end
end
local has_ended = not state
if state and (freed > 0 or state.held == 0) then
  state.held = state.held - freed
  has_ended = end_if_empty(claim, state, false, ARGV[4], ARGV[5])
end
return {table.concat(answers, ','), has_ended and 1 or 0}
