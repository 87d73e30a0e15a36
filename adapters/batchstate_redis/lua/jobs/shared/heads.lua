-- Heads: how what changes of a job reads, and where its payload is. Needs base.
--
-- A head is format, place (its first letter), claim, group, deliveries, attempts, stalls, when (it is due, or extended to,
-- or died), order, when it was added, most attempts, error; tabs between.
local HEAD = '^1\t(%l)\t([^\t]*)\t([^\t]*)\t(%d+)\t(%d+)\t(%d+)\t(%-?%d*)\t(%d+)\t(%-?%d+)\t(%d+)\t(.*)$'

-- Reads a head; answers nil where there is none, or one that nobody of ours wrote.
local function parsed(text)
  local place, claim, group, deliveries, attempts, stalls, when, order, added, most, err
  if text then
    place, claim, group, deliveries, attempts, stalls, when, order, added, most, err = text:match(HEAD)
  end
  return place and {
    place = place, claim = claim, deliveries = deliveries, attempts = attempts, stalls = stalls, when = when,
    order = order, added = added, most = most, group = group, error = err,
  }
end

-- The field in which the job's payload is, beside its head; no name has a tab.
local function payload_of(id)
  return '\t' .. id
end

local function written(head)
  return table.concat({
    '1', head.place, head.claim, head.group, head.deliveries, head.attempts, head.stalls, head.when, head.order,
    head.added, head.most, head.error,
  }, '\t')
end
