-- Says all that the server of a key tells of how it is set up and how it replicates.
--
-- KEYS    1: any key of the queue, which says which server is asked.
-- ARGV    none.
-- answer  the texts of INFO server, memory, persistence, replication and keyspace, one after the other, without
--         what the user may not read.
local texts = {}
for _, section in ipairs({'server', 'memory', 'persistence', 'replication', 'keyspace'}) do
  local answer = redis.pcall('INFO', section)
  texts[#texts + 1] = type(answer) == 'string' and answer or ''
end
return table.concat(texts, '\r\n')
