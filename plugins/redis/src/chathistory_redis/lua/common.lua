-- In front of every script but store.lua.
--
-- A head is revision (16 bytes), epoch (16 bytes), the instant of expiry (16 digits, 0 where there is none), then count of
-- records, bytes of their payloads, instants of creation and last write, and count of turns. Instants are microseconds of
-- this server's clock, text of 16 digits: equally long, they compare as text too, which costs less than as numbers.

local NEVER = '0000000000000000' -- where no instant is

local PAGE, MOST = 4194304, 10000 -- the bytes and the records that one call reads

-- Whether a conversation takes more than one call to read: then the length of each of its records is kept.
local function is_long(head)
  return head.bytes > PAGE or head.count > MOST
end

local function number(value)
  return string.format('%.0f', value) -- tostring loses digits
end

local function clock()
  local time = redis.call('TIME')
  return time[1] .. string.format('%06d', time[2])
end

local function is_over(text, now)
  local expires = string.sub(text, 33, 48)
  return expires ~= NEVER and expires <= now
end

local function parse(text)
  local count, bytes, created, updated, turns = string.match(text, '^(%d+) (%d+) (%d+) (%d+) (%d+)$', 49)
  return {
    revision = string.sub(text, 1, 16),
    epoch = string.sub(text, 17, 32),
    count = tonumber(count),
    bytes = tonumber(bytes),
    created = created,
    updated = updated,
    turns = tonumber(turns),
  }
end
