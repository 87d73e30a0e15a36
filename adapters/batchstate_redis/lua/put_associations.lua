-- Files associations; one that is there stays as it is, with its outcome.
--
-- KEYS    the requests' hashes; ARGV names them by their place here.
-- ARGV    for each association, 3: the hash's place, the batch, the outcome.
-- answer  1.
for at = 1, #ARGV, 3 do
  redis.call('HSETNX', KEYS[tonumber(ARGV[at])], ARGV[at + 1], ARGV[at + 2])
end
return 1
