-- Reads records by state and batch.
--
-- KEYS    the buckets; ARGV names them by their place here.
-- ARGV    for each record, 2: the bucket's place, the batch.
-- answer  for each: its version, or "" where it is not there.
local answers = {}
for at = 1, #ARGV, 2 do
  answers[#answers + 1] = redis.call('ZSCORE', KEYS[tonumber(ARGV[at])], ARGV[at + 1]) or ''
end
return answers
