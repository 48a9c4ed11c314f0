-- ARGV[3..]: operation, turn, digest, new revision, new epoch, expected revision, expected epoch ('*': any), ttl in
-- microseconds (0: none), turns kept, sweep, bytes of all payloads, then each record as format NUL payload.
-- Replies status, revision, epoch, first position.

local key, evicts, operation, turn, digest, revision, epoch, expected_revision, expected_epoch = unpack(ARGV, 1, 9)
local ttl, turns_kept = tonumber(ARGV[10]), tonumber(ARGV[11])
local first_record, last_record = 14, #ARGV

-- Of the payload, which follows the first NUL from there on.
local function length(record, start)
  return #record - string.find(record, '\0', start, true)
end

local now = clock()
local head, lost, expiring, stored, forgotten = find(key, now, turn, turns_kept)
if lost then
  if evicts ~= '1' then return {'lost'} end
  head, stored, forgotten = nil, false, false
end
if stored then
  local status = string.sub(stored, 1, 16) == digest and 'replayed' or 'taken'
  return {status, string.sub(stored, 17, 32), string.sub(stored, 33, 48), string.sub(stored, 49)}
end
if expected_revision ~= '*' and expected_revision ~= (head and head.revision or '') then return {'revision'} end
if expected_epoch ~= '*' and expected_epoch ~= (head and head.epoch or '') then return {'epoch'} end

local created = not head
if created then head = {epoch = epoch, count = 0, bytes = 0, created = now, updated = now, turns = 0} end
if operation == 'replace' then head.epoch, head.count, head.bytes = epoch, 0, 0 end
local first, was_long = head.count + 1, is_long(head)
head.bytes = head.bytes + ARGV[13]
head.count = head.count + last_record - first_record + 1
if head.updated < now then head.updated = now end
head.turns = head.turns + 1
local expires = ttl > 0 and number(now + ttl) or NEVER

-- What is written below is met before, so that nothing can fail on the way.
local dead = (created or ttl > 0) and due(now, tonumber(ARGV[12])) or {}
if created then redis.call('ZCARD', names) end
if expiring then redis.call('ZCARD', expiry) end
if is_long(head) and not was_long or operation == 'replace' then redis.call('LLEN', sizes) end

-- The first write is one that a full server refuses: once a script has written, it may write on.
redis.call('ZADD', recent, '-' .. head.updated, key)
local numbers = string.format(
  '%s%.0f %.0f %s %s %.0f', expires, head.count, head.bytes, head.created, head.updated, head.turns)
redis.call('HSET', heads, key, revision .. head.epoch .. numbers)
if created then
  redis.call('ZADD', names, 0, key)
  redis.call('UNLINK', records, sizes, turns)
elseif operation == 'replace' then
  redis.call('UNLINK', records, sizes)
end

local stamp = now .. ' ' .. turn .. '\0'
for start = first_record, last_record, 500 do
  local chunk = {}
  for index = start, math.min(start + 499, last_record) do chunk[#chunk + 1] = stamp .. ARGV[index] end
  redis.call('RPUSH', records, unpack(chunk))
end
if is_long(head) then
  local lengths = {}
  if first > 1 and not was_long then -- none were kept so far
    for index, record in ipairs(redis.call('LRANGE', records, 0, first - 2)) do
      lengths[index] = length(record, string.find(record, '\0', 1, true) + 1)
    end
  end
  for index = first_record, last_record do lengths[#lengths + 1] = length(ARGV[index], 1) end
  for start = 1, #lengths, 500 do
    redis.call('RPUSH', sizes, unpack(lengths, start, math.min(start + 499, #lengths)))
  end
end
redis.call('HSET', turns, turn, digest .. revision .. head.epoch .. number(first), slot(head.turns), turn)
if forgotten then redis.call('HDEL', turns, forgotten, slot(head.turns - turns_kept)) end

if expires ~= NEVER then
  redis.call('ZADD', expiry, expires, key)
  for _, name in ipairs({records, sizes, turns}) do
    redis.call('PEXPIREAT', name, number(math.ceil(expires / 1000)))
  end
elseif expiring then
  redis.call('ZREM', expiry, key)
  for _, name in ipairs({records, sizes, turns}) do redis.call('PERSIST', name) end
end
for index, name in ipairs(dead) do
  if name == key then
    table.remove(dead, index) -- it has begun anew
    break
  end
end
forget(dead)
return {'written', revision, head.epoch, number(first)}
