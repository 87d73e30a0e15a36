-- Swaps rows, each if it begins as given, and in the same step files the records.
--
-- KEYS    1 to n: the rows, in the order of the swaps; then every bucket and list that is touched,
--         which ARGV names by their place here.
-- ARGV    for each swap, 7:
--           head          what the row must begin with: format, version, not retired, mark if known
--           first, last   the lines to write; the second line of the row stays as it is
--           version       that this makes
--           new bucket    the place of the bucket to file the record in; 0 for none
--           old bucket    the place of the bucket to take the record from; 0 for none
--           list          the place of the list of retired batches; 0 if this write does not retire
-- answer  for each swap: 1 done, now or by an earlier sending of this very command; 0 no such row;
--         or the row that was met.
local call = redis.call
local answers = {}
for n = 1, #ARGV / 7 do
  local at = n * 7 - 6
  local key, head, first = KEYS[n], ARGV[at], ARGV[at + 1]
  local version, new, old, list = ARGV[at + 3], ARGV[at + 4], ARGV[at + 5], ARGV[at + 6]
  local id = key:sub(key:find('}:b:', 1, true) + 4)
  local row = call('GET', key)
  local answer, live = 0, false
  local second = row and row:sub(1, #head) == head and row:match('^[^\n]*(\n[^\n]*\n)')
  if second then
    call('SET', key, first .. second .. ARGV[at + 2])
    if list ~= '0' then
      call('ZADD', KEYS[tonumber(list)], first:match('^1\t%d+\t(%-?%d+)'), id)
    end
    answer, live = 1, list == '0'
  elseif row then
    answer = row
    -- A row that remembers the mark which this write makes was written by an earlier sending of it.
    local mark = first:match('^1\t%d+\t%-?%d*\t([^\t]+)')
    local at_version, retired, latest, earlier = row:match('^1\t(%d+)\t(%-?%d*)\t([^\t]*)\t%d+\t%-?%d+\t[^\t]*\t([^\n]*)')
    if mark and earlier then
      local marks = ' ' .. earlier .. ' ' .. at_version .. ':' .. latest .. ' '
      if marks:find(' ' .. version .. ':' .. mark .. ' ', 1, true) then
        answer, live = 1, retired == ''
      end
    end
  end
  if answer ~= 1 then
    -- A replica refuses even a write that changes nothing; what it knows may be old, and is no answer.
    call('PERSIST', key)
  else
    if live and new ~= '0' then
      call('ZADD', KEYS[tonumber(new)], 'GT', version, id)
    end
    if old ~= '0' then
      local bucket = KEYS[tonumber(old)]
      local filed = call('ZSCORE', bucket, id)
      if filed and tonumber(filed) < tonumber(version) then
        call('ZREM', bucket, id)
      end
    end
  end
  answers[n] = answer
end
return answers
