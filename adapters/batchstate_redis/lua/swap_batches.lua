-- Swaps rows, each if its version and mark are those given, and in the same step files the records.
--
-- KEYS    every row, bucket and list that is touched; ARGV names them by their place here.
-- ARGV    for each swap, 12:
--           row           its key's place
--           id            the batch
--           version       that the row must have
--           mark          that it must carry, or "" for any
--           own           "version:mark" of this very write, or "": a row that remembers it was
--                         written by an earlier sending of this command
--           first, last   the lines to write; the second line of the row stays as it is
--           new version
--           new bucket    the place of the bucket to file the record in; 0 for none
--           old bucket    the place of the bucket to take the record from; 0 for none
--           list          the place of the list of retired batches; 0 if this write does not retire
--           retired_at
-- answer  for each swap: 1 done, 0 no such row, or the row that was met.
local answers = {}
for at = 1, #ARGV, 12 do
  local key, id, expected, mark = KEYS[tonumber(ARGV[at])], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local new_bucket, old_bucket, list = tonumber(ARGV[at + 8]), tonumber(ARGV[at + 9]), tonumber(ARGV[at + 10])
  local row = redis.call('GET', key)
  local answer, live = 0, false
  if row then
    answer = row
    local version, retired, marks, second = row:match('^1\t(%d+)\t(%-?%d*)\t[^\n]*\t([^\t\n]*)\n([^\n]*)\n')
    if version == expected and retired == '' and (mark == '' or mark == marks:match('([^:]*)$')) then
      redis.call('SET', key, ARGV[at + 5] .. '\n' .. second .. '\n' .. ARGV[at + 6])
      if list > 0 then
        redis.call('ZADD', KEYS[list], ARGV[at + 11], id)
      end
      answer, live = 1, list == 0
    elseif version and ARGV[at + 4] ~= '' and (' ' .. marks .. ' '):find(' ' .. ARGV[at + 4] .. ' ', 1, true) then
      answer, live = 1, retired == ''
    end
  end
  if answer == 1 then
    if new_bucket > 0 and live then
      redis.call('ZADD', KEYS[new_bucket], 'GT', ARGV[at + 7], id)
    end
    if old_bucket > 0 then
      local filed = redis.call('ZSCORE', KEYS[old_bucket], id)
      if filed and tonumber(filed) <= tonumber(expected) then
        redis.call('ZREM', KEYS[old_bucket], id)
      end
    end
  end
  answers[#answers + 1] = answer
end
return answers
