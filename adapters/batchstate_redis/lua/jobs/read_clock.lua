-- Reads the server's clock.
--
-- uses    base
-- KEYS    1, 2: as base says.
-- ARGV    1: the time or "".
-- answer  the time in milliseconds.
return int(NOW)
