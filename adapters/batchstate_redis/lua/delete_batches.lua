-- Deletes what is left of retired batches, each if its row is retired and at the version given:
-- records up to that version, then associations, then the row, with its hold.
--
-- KEYS    1: the count of the queue's rows; 2: the list of retired batches; 3: the holds; 4 to n + 3:
--         the rows, in the order of the batches; then every bucket and hash that is touched, which ARGV names by
--         their place here.
-- ARGV    1: b, 2 to b + 1: the places of the buckets; then for each batch, 3 and its associations:
--           version   that the row must have
--           whole     1 to delete the row, 0 if more of its associations are to come
--           m         how many associations follow: the places of the requests' hashes
-- answer  for each batch: 1 gone, or the row that was met.
local call = redis.call
-- A replica refuses even a write that changes nothing; what it knows may be old, and is no answer.
call('PERSIST', KEYS[1])
local buckets = tonumber(ARGV[1])
local answers, gone, at, n = {}, 0, buckets + 2, 0
while at <= #ARGV do
  n = n + 1
  local key, version, last = KEYS[n + 3], ARGV[at], at + 2 + tonumber(ARGV[at + 2])
  local id = key:sub(key:find('}:b:', 1, true) + 4)
  local answer = 1
  local head = call('GETRANGE', key, 0, 63)
  if head ~= '' and head:match('^1\t(%d+)\t%-?%d+\t') ~= version then
    answer = call('GET', key)
  elseif head ~= '' then
    for place = 2, buckets + 1 do
      local bucket = KEYS[tonumber(ARGV[place])]
      local filed = call('ZSCORE', bucket, id)
      if filed and tonumber(filed) <= tonumber(version) then
        call('ZREM', bucket, id)
      end
    end
    for place = at + 3, last do
      call('HDEL', KEYS[tonumber(ARGV[place])], id)
    end
    if ARGV[at + 1] == '1' then
      call('DEL', key)
      call('ZREM', KEYS[2], id)
      call('HDEL', KEYS[3], id)
      gone = gone + 1
    end
  end
  answers[n] = answer
  at = last + 1
end
if gone > 0 and call('DECRBY', KEYS[1], gone) <= 0 then
  call('DEL', KEYS[1])
end
return answers
