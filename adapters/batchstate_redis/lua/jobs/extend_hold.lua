-- Holds a batch longer.
--
-- uses    base, holds
-- KEYS    1, 2: as base says.
-- ARGV    1: the time or ""; 2: the batch; 3: the token; 4: for how long from now, in milliseconds.
-- answer  0 where the hold lapsed or is another's; or the token, and until when.
local holder, until_ = holder_of(ARGV[2])
if holder ~= ARGV[3] or until_ <= NOW then
  return 0
end
return hold(ARGV[2], ARGV[3], ARGV[4])
