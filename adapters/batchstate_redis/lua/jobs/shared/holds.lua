-- Holds: who holds a batch, and until when. Needs base.
local HOLDS = JOBS .. 'holds'

-- Answers the token and the instant, or nil.
local function holder_of(batch)
  local text = call('HGET', HOLDS, batch)
  if not text then
    return nil
  end
  local until_, token = text:match('^(%d+)\t(.*)$')
  return token, tonumber(until_)
end

local function hold(batch, token, lease)
  local until_ = int(NOW + tonumber(lease))
  call('HSET', HOLDS, batch, until_ .. '\t' .. token)
  return {token, until_}
end
