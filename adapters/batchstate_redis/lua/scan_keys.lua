-- Goes through this server's keys that match. What is there throughout is returned, once or more.
--
-- KEYS    1: any key of the queue, which says on which server its keys are.
-- ARGV    1: the server that gave the cursor, or "" to begin; 2: the cursor; 3: the pattern; 4: about
--         how many keys to look at. Another server's cursor means nothing here, so this one begins
--         anew.
-- answer  this server, the next cursor ("0" at the end), the keys.
local info = redis.pcall('INFO', 'server')
local server = type(info) == 'string' and info:match('run_id:(%w+)') or '?'
local page = redis.call('SCAN', ARGV[1] == server and ARGV[2] or '0', 'MATCH', ARGV[3], 'COUNT', ARGV[4])
return {server, page[1], page[2]}
