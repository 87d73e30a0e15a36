-- Ends a hold.
--
-- uses    base, holds
-- KEYS    1, 2: as base says.
-- ARGV    1: the time or ""; 2: the batch; 3: the token.
-- answer  1 there is no hold any more; 0 it lapsed, or is another's.
local holder, until_ = holder_of(ARGV[2])
if not holder then
  return 1
end
if holder ~= ARGV[3] or until_ <= NOW then
  return 0
end
call('HDEL', HOLDS, ARGV[2])
return 1
