-- Reads hashes whole.
--
-- KEYS    the hashes.
-- ARGV    none.
-- answer  for each: its fields and values, flat.
local answers = {}
for place = 1, #KEYS do
  answers[place] = redis.call('HGETALL', KEYS[place])
end
return answers
