-- KEYS: as the scripts that change a conversation. ARGV[3..]: limit, before, after ('' where not given), the epoch of the
-- page before ('' for the first page), the last position of the whole read ('' for the first page).
-- Replies status, head, first position, last position of the whole read, the records of this page.

local heads, records, sizes = KEYS[1], KEYS[5], KEYS[6]
local key, evicts, epoch = ARGV[1], ARGV[2], ARGV[6]
local limit, before, after, last = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[7])

local text = redis.call('HGET', heads, key)
local head = text and not is_over(text, clock()) and parse(text)
local whole = head and redis.call('LLEN', records) == head.count
if whole and is_long(head) then whole = redis.call('LLEN', sizes) == head.count end
if head and not whole then
  if evicts ~= '1' then return {'lost'} end
  head = nil
end
if epoch ~= '' and (not head or head.epoch ~= epoch) then return {'changed'} end
if not head then return {'none'} end

local first = 1
if after then
  first = after + 1
  last = last or math.min(head.count, limit and after + limit or head.count)
else
  last = math.min(head.count, before and before - 1 or head.count)
  first = limit and math.max(1, last - limit + 1) or 1
end
local stop = math.min(last, first + MOST - 1)
local sum, start = 0, first
while is_long(head) and sum < PAGE and start <= stop do
  for index, size in ipairs(redis.call('LRANGE', sizes, start - 1, math.min(start + 998, stop - 1))) do
    sum = sum + size
    if sum >= PAGE then
      stop = start + index - 1
      break
    end
  end
  start = start + 1000
end
local reply = {'found', text, number(first), number(last)}
if first <= last then
  for index, record in ipairs(redis.call('LRANGE', records, number(first - 1), number(stop - 1))) do
    reply[4 + index] = record
  end
end
return reply
