-- ARGV[3..]: expected revision ('*': any), sweep. Replies status.

local key, evicts, expected = unpack(ARGV)
local now = clock()
local head, lost = find(key, now, '', 0)
if lost and evicts == '1' then head = nil end
if head and expected ~= '*' and expected ~= head.revision then return {'revision'} end
local dead = due(now, tonumber(ARGV[4]))
dead[#dead + 1] = key
redis.call('LLEN', sizes)
redis.call('ZCARD', names)
redis.call('ZCARD', recent)
forget(dead)
redis.call('UNLINK', records, sizes, turns)
return {head and 'cleared' or 'none'}
