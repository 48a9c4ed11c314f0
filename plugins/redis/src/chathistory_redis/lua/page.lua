-- KEYS: heads, and names or recent. ARGV: which of them, start and stop (of the sorted set's range), the key behind which
-- to begin among those of one instant, limit, entries to look at.
-- Replies whether there may be more ('1'), the last key looked at, then key and head of each conversation.

local heads, index = unpack(KEYS)
local range = ARGV[1] == 'names' and 'ZRANGEBYLEX' or 'ZRANGEBYSCORE'
local start, stop, behind = ARGV[2], ARGV[3], ARGV[4]
local limit, most = tonumber(ARGV[5]), tonumber(ARGV[6])

-- Whether one stands behind the other by byte; the operators of strings follow the server's locale.
local function is_behind(one, other)
  for at = 1, math.min(#one, #other) do
    local byte, other_byte = string.byte(one, at), string.byte(other, at)
    if byte ~= other_byte then return byte > other_byte end
  end
  return #one > #other
end

local now = clock()
local reply = {'1', ''}
local seen, found = 0, 0
while found < limit and seen < most do
  local count = math.min(limit - found, 1000)
  local keys, scores = {}, {}
  if behind == '' then
    keys = redis.call(range, index, start, stop, 'LIMIT', seen, count)
  else
    local entries = redis.call('ZRANGEBYSCORE', index, start, stop, 'WITHSCORES', 'LIMIT', seen, count)
    for at = 1, #entries, 2 do
      keys[#keys + 1] = entries[at]
      scores[#scores + 1] = number(tonumber(entries[at + 1]))
    end
  end
  if #keys > 0 then
    for at, text in ipairs(redis.call('HMGET', heads, unpack(keys))) do
      local key = keys[at]
      local passed = scores[at] == start and not is_behind(key, behind)
      if text and not passed and not is_over(text, now) then
        reply[#reply + 1] = key
        reply[#reply + 1] = text
        found = found + 1
      end
    end
    reply[2] = keys[#keys]
  end
  seen = seen + #keys
  if #keys < count then
    reply[1] = ''
    break
  end
end
return reply
