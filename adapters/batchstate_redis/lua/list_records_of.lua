-- Reads several buckets as of one instant, unless they hold too much for one answer.
--
-- KEYS    the buckets.
-- ARGV    1: how many records are too many.
-- answer  for each bucket, its batches and versions, flat; or 0 for too many.
local total = 0
for place = 1, #KEYS do
  total = total + redis.call('ZCARD', KEYS[place])
end
if total > tonumber(ARGV[1]) then
  return 0
end
local answers = {}
for place = 1, #KEYS do
  answers[place] = redis.call('ZRANGE', KEYS[place], 0, -1, 'WITHSCORES')
end
return answers
