-- Holds a batch, unless another does.
--
-- uses    base, holds
-- KEYS    1, 2: as base says.
-- ARGV    1: the time or ""; 2: the batch; 3: the token; 4: for how long, in milliseconds.
-- answer  0 where there is no such batch; or whose token holds it now, and until when.
if call('EXISTS', ROOT .. 'b:' .. ARGV[2]) == 0 then
  return 0
end
local holder, until_ = holder_of(ARGV[2])
if holder and until_ > NOW then
  return {holder, int(until_)}
end
return hold(ARGV[2], ARGV[3], ARGV[4])
