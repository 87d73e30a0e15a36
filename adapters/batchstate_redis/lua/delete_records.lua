-- Deletes records, each unless the stored one's version is above the one given.
--
-- KEYS    every bucket that is touched; ARGV names them by their place here.
-- ARGV    for each record, 3: the bucket's place, the batch, the version.
-- answer  1.
-- A replica refuses even a write that changes nothing; what it knows may be old, and is no answer.
redis.call('PERSIST', KEYS[1])
for at = 1, #ARGV, 3 do
  local bucket, id = KEYS[tonumber(ARGV[at])], ARGV[at + 1]
  local filed = redis.call('ZSCORE', bucket, id)
  if filed and tonumber(filed) <= tonumber(ARGV[at + 2]) then
    redis.call('ZREM', bucket, id)
  end
end
return 1
