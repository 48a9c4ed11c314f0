-- In front of every script but store.lua.
--
-- A head is revision (16 bytes), epoch (16 bytes), the instant of expiry (16 digits, 0 where there is none), then count of
-- records, bytes of their payloads, instants of creation and last write, and count of turns. Instants are microseconds of
-- this server's clock.

local PAGE = 4194304 -- the bytes that one call reads; of a conversation with more, the length of each record is kept

local function number(value)
  return string.format('%.0f', value) -- tostring loses digits
end

local function clock()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

local function is_over(text, now)
  local expires = tonumber(string.sub(text, 33, 48))
  return expires > 0 and expires <= now
end

local function parse(text)
  local count, bytes, created, updated, turns = string.match(text, '^(%d+) (%d+) (%d+) (%d+) (%d+)$', 49)
  return {
    revision = string.sub(text, 1, 16),
    epoch = string.sub(text, 17, 32),
    count = tonumber(count),
    bytes = tonumber(bytes),
    created = tonumber(created),
    updated = tonumber(updated),
    turns = tonumber(turns),
  }
end
