-- Goes through this server's keys that match. A cursor is good on the server that gave it alone.
--
-- KEYS    1: any key of the queue, which says on which server its keys are.
-- ARGV    1: the server that gave the cursor, or "" to begin; 2: the cursor; 3: the
--         pattern; 4: about how many keys to look at.
-- answer  this server, the next cursor ("0" at the end), the keys; or 0 if another server gave the cursor.
local info = redis.pcall('INFO', 'server')
local server = type(info) == 'string' and info:match('run_id:(%w+)') or '?'
if ARGV[1] ~= '' and ARGV[1] ~= server then
  return 0
end
local page = redis.call('SCAN', ARGV[2], 'MATCH', ARGV[3], 'COUNT', ARGV[4])
return {server, page[1], page[2]}
