-- Inserts rows, each if there is none of its ID, and in the same step files associations and record.
--
-- KEYS    1: the count of the queue's rows; 2 to n + 1: the rows, in the order of the batches; then
--         every bucket, list and hash that is touched, which ARGV names by their place here.
-- ARGV    for each batch, 5 and its associations:
--           text          the row
--           version
--           bucket        the place of the bucket to file the record in; 0 for none
--           list          the place of the list of retired batches; 0 if it is not retired
--           m             how many associations follow: the places of the requests' hashes
-- answer  for each batch: 1 there, written now or by an earlier sending of this very command; or the
--         row that was met.
local call = redis.call
local answers, made, at, n = {}, 0, 1, 0
while at <= #ARGV do
  n = n + 1
  local key, text, version, bucket, list = KEYS[n + 1], ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local last = at + 4 + tonumber(ARGV[at + 4])
  local id = key:sub(key:find('}:b:', 1, true) + 4)
  local row = call('GET', key)
  local answer, live = 1, list == '0'
  if row then
    -- A row that remembers the mark which this write makes was written by an earlier sending of it.
    local mark = text:match('^1\t%d+\t%-?%d*\t([^\t]+)')
    local at_version, retired, latest, earlier = row:match('^1\t(%d+)\t(%-?%d*)\t([^\t]*)\t%d+\t%-?%d+\t[^\t]*\t([^\n]*)')
    local marks = earlier and ' ' .. earlier .. ' ' .. at_version .. ':' .. latest .. ' '
    if marks and mark and marks:find(' ' .. version .. ':' .. mark .. ' ', 1, true) then
      live = retired == ''
    else
      answer = row
      -- A replica refuses even a write that changes nothing; what it knows may be old, and is no answer.
      call('PERSIST', key)
    end
  end
  if answer == 1 then
    for place = at + 5, last do
      call('HSETNX', KEYS[tonumber(ARGV[place])], id, '')
    end
    if not row then
      call('SET', key, text)
      made = made + 1
      if list ~= '0' then
        call('ZADD', KEYS[tonumber(list)], text:match('^1\t%d+\t(%-?%d+)'), id)
      end
    end
    if live and bucket ~= '0' then
      call('ZADD', KEYS[tonumber(bucket)], 'GT', version, id)
    end
  end
  answers[n] = answer
  at = last + 1
end
if made > 0 then
  call('INCRBY', KEYS[1], made)
end
return answers
