-- ARGV[3]: sweep.

forget(due(clock(), tonumber(ARGV[3])))
return {}
