"""What Redis does in one step, in its own language (Lua), by its own clock.

A record is a hash: `d` its data, `v` its version, `e` when it is over whatever happens, `i` how long it may be idle,
`c` its number, `x` the index of its owner. An index is a sorted set of the names of records by when they are over.
Times are milliseconds; -1 is never.
"""

from __future__ import annotations

from typing import Final

_NOW: Final = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
"""

_USE: Final = """
local function use(record, index, fixed, idle)
  local over = fixed
  if idle >= 0 and (fixed < 0 or now + idle < fixed) then over = now + idle end
  local left = redis.call('PTTL', index)
  if over < 0 then
    redis.call('ZADD', index, 'inf', record)
    redis.call('PERSIST', index)
  else
    redis.call('PEXPIREAT', record, over)
    redis.call('ZADD', index, over, record)
    if left == -2 or (left >= 0 and now + left < over) then redis.call('PEXPIREAT', index, over) end
  end
end
"""

ALL: Final = {
    "create": f"""{_NOW}{_USE}
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
local most = tonumber(ARGV[4])
if most >= 0 and redis.call('ZCARD', KEYS[2]) >= most then return 0 end
local ttl = tonumber(ARGV[2])
local fixed = ttl < 0 and -1 or now + ttl
local number = redis.call('INCR', KEYS[3])
redis.call('HSET', KEYS[1], 'd', ARGV[1], 'v', 0, 'e', fixed, 'i', ARGV[3], 'c', number, 'x', KEYS[2])
use(KEYS[1], KEYS[2], fixed, tonumber(ARGV[3]))
return 1
""",
    "get": f"""{_NOW}{_USE}
local found = redis.call('HMGET', KEYS[1], 'd', 'v', 'e', 'i', 'x')
if not found[1] then return false end
if tonumber(found[4]) >= 0 then use(KEYS[1], found[5], tonumber(found[3]), tonumber(found[4])) end
return {{found[1], found[2]}}
""",
    "replace": f"""{_NOW}{_USE}
local found = redis.call('HMGET', KEYS[1], 'v', 'e', 'i', 'x')
if found[1] ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'd', ARGV[1], 'v', found[1] + 1)
if tonumber(found[3]) >= 0 then use(KEYS[1], found[4], tonumber(found[2]), tonumber(found[3])) end
return 1
""",
    "delete": """
local index = redis.call('HGET', KEYS[1], 'x')
if not index then return 0 end
redis.call('ZREM', index, KEYS[1])
return redis.call('DEL', KEYS[1])
""",
    "owned": f"""{_NOW}
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
local all = {{}}
for _, name in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  local found = redis.call('HMGET', name, 'd', 'v', 'c')
  if found[1] then table.insert(all, {{name, found[1], found[2], found[3]}}) end
end
return all
""",
    "hold": """
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
""",
    "release": """
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
""",
}
