-- Inserts rows, each if there is none of its ID, and in the same step files associations and record.
--
-- KEYS    1: the count of the queue's rows; then every row, bucket, list and hash that is touched;
--         ARGV names them by their place here.
-- ARGV    for each batch, 9 and its associations:
--           row           its key's place
--           id            the batch
--           own           "version:mark" of this very write, or ""
--           text          the row
--           version
--           bucket        the place of the bucket to file the record in; 0 for none
--           list          the place of the list of retired batches; 0 if it is not retired
--           retired_at
--           n             how many associations follow: the places of the requests' hashes
-- answer  for each batch: 1 there, written now or by an earlier sending of this command; or the row
--         that was met.
local answers, made, at = {}, 0, 1
while at <= #ARGV do
  local key, id, own = KEYS[tonumber(ARGV[at])], ARGV[at + 1], ARGV[at + 2]
  local bucket, list, n = tonumber(ARGV[at + 5]), tonumber(ARGV[at + 6]), tonumber(ARGV[at + 8])
  local row = redis.call('GET', key)
  local answer, live = 1, list == 0
  if row then
    local retired, marks = row:match('^1\t%d+\t(%-?%d*)\t[^\n]*\t([^\t\n]*)\n')
    if marks and own ~= '' and (' ' .. marks .. ' '):find(' ' .. own .. ' ', 1, true) then
      live = retired == ''
    else
      answer = row
    end
  end
  if answer == 1 then
    for place = at + 9, at + 8 + n do
      redis.call('HSETNX', KEYS[tonumber(ARGV[place])], id, '')
    end
    if not row then
      redis.call('SET', key, ARGV[at + 3])
      made = made + 1
      if list > 0 then
        redis.call('ZADD', KEYS[list], ARGV[at + 7], id)
      end
    end
    if bucket > 0 and live then
      redis.call('ZADD', KEYS[bucket], 'GT', ARGV[at + 4], id)
    end
  end
  answers[#answers + 1] = answer
  at = at + 9 + n
end
if made > 0 then
  redis.call('INCRBY', KEYS[1], made)
end
return answers
