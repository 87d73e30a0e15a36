-- Files records, each unless one of a version as high is there, or its batch has no row or is retired.
--
-- KEYS    every row and bucket that is touched; ARGV names them by their place here.
-- ARGV    for each record, 4: the row's place, the bucket's place, the batch, the version.
-- answer  1.
for at = 1, #ARGV, 4 do
  -- The head of a row is enough: format, version and retired_at come first.
  local head = redis.call('GETRANGE', KEYS[tonumber(ARGV[at])], 0, 63)
  if head ~= '' and not head:find('^1\t%d+\t%-?%d+\t') then
    redis.call('ZADD', KEYS[tonumber(ARGV[at + 1])], 'GT', ARGV[at + 3], ARGV[at + 2])
  end
end
return 1
