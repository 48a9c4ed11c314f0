-- In front of the scripts that change a conversation. KEYS: heads, names, recent, expiry, records, sizes, turns.
-- ARGV begins with the key of the conversation and whether the server may evict ('1').

local heads, names, recent, expiry, records, sizes, turns = unpack(KEYS)

-- A turn is a field of `turns` under its id, and its id one under its number behind a NUL, which no id holds.
local function slot(count)
  return '\0' .. number(count)
end

-- The head, or nil; whether the server lost a part of the conversation; whether it would expire or has; the turn as it is
-- remembered; the id of the turn to forget. Meets the keys of the conversation, so that one of another type is an error
-- before anything is written.
local function find(key, now, turn, turns_kept)
  local text = redis.call('HGET', heads, key)
  local head = text and not is_over(text, now) and parse(text)
  local count = head and head.turns or 0
  local known = redis.call('HMGET', turns, turn, slot(count), slot(count + 1 - turns_kept))
  local held = redis.call('LLEN', records)
  local sized = (not head or is_long(head)) and redis.call('LLEN', sizes)
  local expiring = text and string.sub(text, 33, 48) ~= NEVER
  if not head then return nil, false, expiring, false, false end
  local lost = held ~= head.count or not known[2] or is_long(head) and sized ~= head.count
  return head, lost, expiring, known[1], known[3]
end

-- Some of what has expired, to be taken out of the listing; the server itself removes the rest of it.
local function due(now, most)
  return redis.call('ZRANGEBYSCORE', expiry, '-inf', now, 'LIMIT', 0, most)
end

local function forget(dead)
  if #dead > 0 then
    redis.call('HDEL', heads, unpack(dead))
    redis.call('ZREM', names, unpack(dead))
    redis.call('ZREM', recent, unpack(dead))
    redis.call('ZREM', expiry, unpack(dead))
  end
end
