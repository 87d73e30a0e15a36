-- Claims in flight: what is known of one, and how it ends. Needs base, heads.
--
-- A claim's state is when its lease ends, how many jobs it holds, 1 if some were lost to it, 1 if some
-- were extended by themselves; spaces between. Its make-up is written once: a line of the states that
-- it ends in when settled and when abandoned and of those that are terminal, tabs between, then a line
-- a job. Which of them it holds still, their heads say.
--
-- Both are fields of one hash: the claim, and the claim with a tab before it, which no name has.
local CLAIMS, LEASES = JOBS .. 'claims', JOBS .. 'leases'
local rows, made = {}, {}

-- Answers the state, or nil; with `whole` it reads the make-up along with it.
local function state_of(claim, whole)
  local text
  if whole then
    local both = call('HMGET', CLAIMS, claim, '\t' .. claim)
    text, made[claim] = both[1], both[2]
  else
    text = call('HGET', CLAIMS, claim)
  end
  if not text then
    return nil
  end
  local expires, held, lost, extended = text:match('^(%d+) (%d+) (%d) (%d)$')
  return {expires = tonumber(expires), held = tonumber(held), lost = lost, extended = extended}
end

local function write_state(claim, state)
  local text = int(state.expires) .. ' ' .. int(state.held) .. ' ' .. state.lost .. ' ' .. state.extended
  call('HSET', CLAIMS, claim, text)
end

-- The jobs that a claim was made of, in their order.
local function members_of(claim)
  local text = made[claim] or call('HGET', CLAIMS, '\t' .. claim)
  local ids, n = {}, 0
  if text then
    for id in text:sub(text:find('\n', 1, true) + 1):gmatch('[^\n]+') do
      n = n + 1
      ids[n] = id
    end
  end
  return ids
end

-- Calls `visit` with each held job's ID and head, in their order, until it answers false.
local function each_held(claim, visit)
  local ids = members_of(claim)
  local heads = fields(HEADS, ids)
  for n = 1, #ids do
    local head = parsed(heads[n])
    if head and head.place == 'a' and head.claim == claim and visit(ids[n], head) == false then
      return
    end
  end
end

local function deadline_of(state, head)
  return math.max(state.expires, tonumber(head.when) or 0)
end

-- Answers the batch's row, when the lease ends, the jobs held, and head and payload of each, flat.
local function claimed(claim)
  local state, row = state_of(claim), call('GET', ROOT .. 'b:' .. claim)
  if not state or not row then
    return false
  end
  local ids, names, held = {}, {}, {}
  each_held(claim, function(id, head)
    ids[#ids + 1], names[#names + 1] = id, payload_of(id)
    held[2 * #ids - 1], held[2 * #ids] = written(head), ''
  end)
  local payloads = fields(HEADS, names)
  for n = 1, #ids do
    held[2 * n] = payloads[n] or ''
  end
  return {row, int(state.expires), ids, held}
end

-- Whether the batch's row is there and not retired, so that none of its associations was purged. Where
-- the claim is about to end, all of the row is needed.
local function is_live(claim, is_ending)
  local key = ROOT .. 'b:' .. claim
  if is_ending then
    rows[claim] = call('GET', key) or ''
  end
  return (rows[claim] or call('GETRANGE', key, 0, 31)):match('^1\t%d+\t\t') ~= nil
end

-- Moves the batch of a claim that holds nothing any more, and its record, and retires it where that is an end.
local function end_batch(claim, ending, swept, by_and_why, mark)
  local key = ROOT .. 'b:' .. claim
  local row = rows[claim] or call('GET', key) or ''
  local version, retired, old_mark, entered, state, earlier, rest = row:match(
    '^1\t(%d+)\t(%-?%d*)\t([^\t]*)\t(%d+)\t%-?%d+\t([^\t\n]*)\t([^\n]*)\n([^\n]*\n[^\n]*\n.*)$')
  if not version or retired ~= '' then
    return
  end
  local settled, abandoned, terminal = (ending .. '\t'):match('^([^\t]*)\t([^\t]*)(.*)$')
  local to = state
  if not terminal:find('\t' .. state .. '\t', 1, true) then
    to = swept and abandoned or settled
  end
  local is_end = terminal:find('\t' .. to .. '\t', 1, true)
  local at, now = int(version + 1), int(NOW)
  earlier = (earlier == '' and '' or earlier .. ' ') .. version .. ':' .. old_mark
  -- The last seven marks and the last twenty moves are kept; a row has no more of either than its version says.
  if tonumber(version) > 7 then
    earlier = earlier:match(' (' .. ('%S+ '):rep(6) .. '%S+)$') or earlier
  end
  if tonumber(version) > 19 then
    local before, moves = rest:match('^([^\n]*\n[^\n]*\n)(.*)$')
    rest = before .. (moves:match('\n(' .. ('[^\n]*\n'):rep(18) .. '[^\n]*)$') or moves)
  end
  local states = state:gsub('["\\]', '\\%0') .. '","' .. to:gsub('["\\]', '\\%0')
  local move = '["' .. states .. '",' .. at .. ',' .. now .. ',' .. by_and_why .. ']'
  call('SET', key, '1\t' .. at .. '\t' .. (is_end and now or '') .. '\t' .. mark .. '\t' .. (to == state and entered or at)
    .. '\t' .. now .. '\t' .. to .. '\t' .. earlier .. '\n' .. rest .. (rest:sub(-1) == '\n' and '' or '\n') .. move)
  if is_end then
    call('ZADD', ROOT .. 'r', now, claim)
  else
    call('ZADD', ROOT .. 's:' .. to, 'GT', at, claim)
  end
  if is_end or to ~= state then
    call('ZREM', ROOT .. 's:' .. state, claim) -- whose version is the row's at most
  end
end

-- Writes a claim's state, or ends it where it holds nothing any more; answers whether it did.
local function end_if_empty(claim, state, swept, by_and_why, mark)
  if state.held > 0 then
    write_state(claim, state)
    return false
  end
  local ending = (made[claim] or call('HGET', CLAIMS, '\t' .. claim)):match('^[^\n]*')
  call('HDEL', CLAIMS, claim, '\t' .. claim)
  call('ZREM', LEASES, claim)
  end_batch(claim, ending, swept, by_and_why, mark)
  return true
end
