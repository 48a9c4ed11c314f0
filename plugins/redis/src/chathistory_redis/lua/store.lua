-- KEYS: the key that tells how a store is laid out. ARGV: the layout of a new store. Replies the layout it has.

redis.call('SET', KEYS[1], ARGV[1], 'NX')
return {redis.call('GET', KEYS[1])}
