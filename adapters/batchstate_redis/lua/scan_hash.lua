-- Goes through the fields of a hash. A cursor is good on the server that gave it alone.
--
-- KEYS    1: the hash.
-- ARGV    1: the server that gave the cursor, or "" to begin; 2: the cursor; 3: about how many fields.
-- answer  this server, the next cursor ("0" at the end), fields and values, flat; or 0 if another
--         server gave the cursor. A hash that fits one answer is read without asking for the server.
local function name_of_server()
  local info = redis.pcall('INFO', 'server')
  return type(info) == 'string' and info:match('run_id:(%w+)') or '?'
end

if ARGV[1] ~= '' and ARGV[1] ~= name_of_server() then
  return 0
end
local page = redis.call('HSCAN', KEYS[1], ARGV[2], 'COUNT', ARGV[3])
return {page[1] == '0' and '' or name_of_server(), page[1], page[2]}
