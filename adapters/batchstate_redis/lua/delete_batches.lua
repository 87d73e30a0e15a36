-- Deletes what is left of retired batches, each if its row is retired and at the version given:
-- records up to that version, then associations, then the row.
--
-- KEYS    1: the count of the queue's rows; 2: the list of retired batches; then every row, bucket
--         and hash that is touched; ARGV names them by their place here.
-- ARGV    1: n, 2 to n + 1: the places of the buckets; then for each batch, 5 and its associations:
--           row       its key's place
--           id        the batch
--           version   that the row must have
--           whole     1 to delete the row, 0 if more of its associations are to come
--           m         how many associations follow: the places of the requests' hashes
-- answer  for each batch: 1 gone, or the row that was met.
local buckets = tonumber(ARGV[1])
local answers, gone, at = {}, 0, buckets + 2
while at <= #ARGV do
  local key, id, version, m = KEYS[tonumber(ARGV[at])], ARGV[at + 1], ARGV[at + 2], tonumber(ARGV[at + 4])
  local answer = 1
  local head = redis.call('GETRANGE', key, 0, 63)
  if head ~= '' then
    if head:match('^1\t(%d+)\t%-?%d+\t') == version then
      for place = 2, buckets + 1 do
        local bucket = KEYS[tonumber(ARGV[place])]
        local filed = redis.call('ZSCORE', bucket, id)
        if filed and tonumber(filed) <= tonumber(version) then
          redis.call('ZREM', bucket, id)
        end
      end
      for place = at + 5, at + 4 + m do
        redis.call('HDEL', KEYS[tonumber(ARGV[place])], id)
      end
      if ARGV[at + 3] == '1' then
        redis.call('DEL', key)
        redis.call('ZREM', KEYS[2], id)
        gone = gone + 1
      end
    else
      answer = redis.call('GET', key)
    end
  end
  answers[#answers + 1] = answer
  at = at + 5 + m
end
if gone > 0 and redis.call('DECRBY', KEYS[1], gone) <= 0 then
  redis.call('DEL', KEYS[1])
end
return answers
