-- Says what the server of a key is and how it is set up.
--
-- KEYS    1: any key of the queue, which says which server is asked.
-- ARGV    none.
-- answer  the text of INFO server and INFO memory; "" of what the user may not read.
local function read(section)
  local answer = redis.pcall('INFO', section)
  return type(answer) == 'string' and answer or ''
end

return {read('server'), read('memory')}
