-- Files records, each unless one of a version as high is there, or its batch has no row or is retired.
--
-- KEYS    1 to n: the batches' rows, in the order of the records; then every bucket that is touched,
--         which ARGV names by their place here.
-- ARGV    for each record, 2: the bucket's place, the version.
-- answer  1.
-- A replica refuses even a write that changes nothing; what it knows may be old, and is no answer.
redis.call('PERSIST', KEYS[1])
for n = 1, #ARGV / 2 do
  local key = KEYS[n]
  -- The head of a row is enough: format, version and retired_at come first.
  local head = redis.call('GETRANGE', key, 0, 63)
  if head ~= '' and not head:find('^1\t%d+\t%-?%d+\t') then
    redis.call('ZADD', KEYS[tonumber(ARGV[2 * n - 1])], 'GT', ARGV[2 * n], key:sub(key:find('}:b:', 1, true) + 4))
  end
end
return 1
