-- Goes through the members of a sorted set or the fields of a hash. What is there throughout is
-- returned, once or more, whatever is added, changed and removed meanwhile.
--
-- KEYS    1: the sorted set or hash.
-- ARGV    1: ZSCAN or HSCAN; 2: the server that gave the cursor, or "" to begin; 3: the cursor;
--         4: about how many. Another server's cursor means nothing here, so this one begins anew.
-- answer  this server, the next cursor ("0" at the end), members and scores or fields and values,
--         flat.
local function name_of_server()
  local info = redis.pcall('INFO', 'server')
  return type(info) == 'string' and info:match('run_id:(%w+)') or '?'
end

local given = ARGV[2]
local server = given ~= '' and name_of_server()
local page = redis.call(ARGV[1], KEYS[1], given == (server or '') and ARGV[3] or '0', 'COUNT', ARGV[4])
return {page[1] ~= '0' and (server or name_of_server()) or '', page[1], page[2]}
