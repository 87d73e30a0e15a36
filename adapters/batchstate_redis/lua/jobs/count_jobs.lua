-- Counts the jobs of some groups by place, and the claims in flight.
--
-- uses    base, heads, claims
-- KEYS    1, 2: as base says.
-- ARGV    1: the time or ""; 2: how many groups; 3: "=" and the group to go on after, or "" to begin; 4: how many
--         claims to pass over of those that may have lapsed.
-- answer  for each group: its name, how many wait, are held, are due later, are dead, its ceiling or "", "=" and the
--         reason of its pause or "", when the oldest that waits was added or ""; then "=" and the reason of the
--         queue's pause or "", the default ceiling or "", how many claims are in flight, how many of those looked at
--         have lapsed, whether more may have, the time.
local after = ARGV[3] == '' and '-' or '(' .. ARGV[3]:sub(2)
local names = call('ZRANGEBYLEX', JOBS .. 'groups', after, '+', 'LIMIT', 0, ARGV[2])
local ceilings, pauses = fields(JOBS .. 'ceilings', names), fields(JOBS .. 'pauses', names)
local groups = {}
for n = 1, #names do
  local name = names[n]
  local first = call('ZRANGE', JOBS .. 'waiting:' .. name, 0, 0)[1]
  local head = first and parsed(call('HGET', HEADS, first))
  groups[n] = {
    name, call('ZCARD', JOBS .. 'waiting:' .. name), call('ZCARD', JOBS .. 'active:' .. name),
    call('ZCARD', JOBS .. 'scheduled:' .. name), call('ZCARD', JOBS .. 'dead:' .. name),
    ceilings[n] or '', pauses[n] and '=' .. pauses[n] or '', head and head.added or '',
  }
end
local candidates = call('ZRANGEBYSCORE', LEASES, '-inf', int(NOW), 'LIMIT', ARGV[4], 200)
local lapsed = 0
for n = 1, #candidates do
  local state = state_of(candidates[n])
  local is_lapsed = state and state.expires <= NOW and state.extended == '0'
  if state and state.expires <= NOW and not is_lapsed then
    each_held(candidates[n], function(_, head)
      is_lapsed = deadline_of(state, head) <= NOW
      return not is_lapsed
    end)
  end
  lapsed = lapsed + (is_lapsed and 1 or 0)
end
return {
  groups, is_paused and '=' .. is_paused or '', default_ceiling or '', call('ZCARD', LEASES), lapsed,
  #candidates == 200 and 1 or 0, int(NOW),
}
