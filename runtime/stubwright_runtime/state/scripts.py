"""Atomic operations as Lua scripts that use Redis's clock.

A record is a hash with the fields `d` (data), `h` (head), `v` (version), `e` (latest expiry), `i` (idle time), `c`
(creation number), `x` (the owner's index), `a` (account), `s` (the set in that account), `b` (counted bytes), `r`
(record_index) and `f` (`1` for a final version). An index is a sorted set of record names, scored by expiry. Times are
in milliseconds; -1 means never.

An account belongs to one payer. It has a sorted set of `BYTES:RECORD`, scored by the records' expiry, and another for
spare records; `accounts:spare` has the names of all spare records, and `accounts:spare:used` their bytes at `*`.
`accounts` is a sorted set of all accounts, scored by their earliest expiry. `used` is a hash of each account's bytes,
with the sum at `*`. The bytes of expired records are subtracted before a new record is counted.
"""

from __future__ import annotations

from typing import Final

_NOW: Final = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
"""

_USE: Final = """
local function over_at(fixed, idle)
  if idle >= 0 and (fixed < 0 or now + idle < fixed) then return now + idle end
  return fixed
end

local function use(record, index, set, bytes, over)
  local left = redis.call('PTTL', index)
  local score = over < 0 and 'inf' or over
  redis.call('ZADD', index, score, record)
  redis.call('ZADD', set, score, bytes .. ':' .. record)
  if over < 0 then
    redis.call('PERSIST', index)
  else
    redis.call('PEXPIREAT', record, over)
    if left == -2 or (left >= 0 and now + left < over) then redis.call('PEXPIREAT', index, over) end
  end
end
"""

_ACCOUNTS: Final = """
local SPARE = ACCOUNTS .. ':spare'

local function used(account)
  return tonumber(redis.call('HGET', USED, account) or '0')
end

local function charge(account, bytes, set)
  if bytes == 0 then return end
  if set == account .. ':spare' then redis.call('HINCRBY', SPARE .. ':used', '*', bytes) end
  redis.call('HINCRBY', USED, account, bytes)
  redis.call('HINCRBY', USED, '*', bytes)
end

local function earliest(account)
  local first = nil
  for _, set in ipairs({account, account .. ':spare'}) do
    local found = redis.call('ZRANGE', set, 0, 0, 'WITHSCORES')
    if found[2] and (not first or tonumber(found[2]) < tonumber(first)) then first = found[2] end
  end
  return first
end

local function settle(account)
  local first = earliest(account)
  if first then
    redis.call('ZADD', ACCOUNTS, first, account)
  else
    charge(account, -used(account))
    redis.call('HDEL', USED, account)
    redis.call('ZREM', ACCOUNTS, account)
  end
end

local function sweep()
  redis.call('ZREMRANGEBYSCORE', SPARE, '-inf', '(' .. now)
  for _, account in ipairs(redis.call('ZRANGEBYSCORE', ACCOUNTS, '-inf', '(' .. now)) do
    for _, set in ipairs({account, account .. ':spare'}) do
      local bytes = 0
      for _, member in ipairs(redis.call('ZRANGEBYSCORE', set, '-inf', '(' .. now)) do
        bytes = bytes + tonumber(string.match(member, '^%d+'))
      end
      redis.call('ZREMRANGEBYSCORE', set, '-inf', '(' .. now)
      charge(account, -bytes, set)
    end
    settle(account)
  end
end

local function drop(record)
  local found = redis.call('HMGET', record, 'x', 'a', 's', 'b')
  if not found[1] then return 0 end
  redis.call('ZREM', found[1], record)
  redis.call('ZREM', SPARE, record)
  redis.call('ZREM', found[3], found[4] .. ':' .. record)
  charge(found[2], -tonumber(found[4]), found[3])
  return redis.call('DEL', record)
end

local function refused(account, more, each, all)
  while true do
    local own, total = used(account), used('*')
    local whose = nil
    if own + more > each then whose = 'caller' elseif own + more > all - total - more then whose = 'server' end
    if not whose then return nil end
    local own_oldest = redis.call('ZRANGE', account .. ':spare', 0, 0)[1]
    local record = own_oldest and string.match(own_oldest, ':(.*)$')
    if not record and whose == 'server' then record = redis.call('ZRANGE', SPARE, 0, 0)[1] end
    local rest = (own_oldest and 0 or own) + more
    local needed = total - tonumber(redis.call('HGET', SPARE .. ':used', '*') or '0')
    if not record or rest > each or rest > all - needed - more then -- evicting would not help
      local first = whose == 'caller' and earliest(account) or redis.call('ZRANGE', ACCOUNTS, 0, 0, 'WITHSCORES')[2]
      local wait = -1
      if first and first ~= 'inf' then wait = math.max(0, tonumber(first) - now) end
      return {whose, own, total, wait}
    end
    local payer = redis.call('HGET', record, 'a')
    if drop(record) == 1 then
      settle(payer)
    elseif own_oldest then
      redis.call('ZREM', account .. ':spare', own_oldest)
      charge(account, -tonumber(string.match(own_oldest, '^%d+')), account .. ':spare')
    end
    redis.call('ZREM', SPARE, record)
  end
end
"""

_ROSTER: Final = """
local function enrol(record_index, token, sealed, over, channel, note)
  if redis.call('GETRANGE', record_index, 0, 15) ~= token then return false end
  redis.call('SET', record_index, sealed)
  if tonumber(over) >= 0 then redis.call('PEXPIREAT', record_index, over) end
  redis.call('PUBLISH', channel, note)
  return true
end
"""
"""Replaces an index if the old ciphertext's first bytes, which are unique, have not changed."""

CHANGED: Final = "changed"
"""A script's result if it did nothing because the index has changed."""

CLAIMED: Final = "claimed"
"""The first item in a `claim` script's result if it did nothing because the record exists."""

_CREATE: Final = f"""{_NOW}{_USE}
local ACCOUNTS, USED = KEYS[4], KEYS[5]
{_ACCOUNTS}{_ROSTER}
local record, index, account = KEYS[1], KEYS[2], KEYS[6]
local sealed, head, spare = ARGV[1], ARGV[2], ARGV[6]
local ttl, idle, most = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local bytes, room, each, all = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10])
redis.call('ZREMRANGEBYSCORE', index, '-inf', now)
if most >= 0 and redis.call('ZCARD', index) >= most then return 0 end
sweep()
local why = refused(account, bytes + room, each, all)
if why then return why end
if record_index and not enrol(record_index, ARGV[11], ARGV[12], ARGV[13], ARGV[14], ARGV[15])
then return '{CHANGED}' end
drop(record)
local fixed = ttl < 0 and -1 or now + ttl
local set = spare == '1' and account .. ':spare' or account
local number = redis.call('INCR', KEYS[3])
redis.call('HSET', record, 'd', sealed, 'h', head, 'v', 0, 'e', fixed, 'i', idle, 'c', number, 'x', index,
  'a', account, 's', set, 'b', bytes, 'r', record_index or '', 'f', '')
charge(account, bytes, set)
local over = over_at(fixed, idle)
use(record, index, set, bytes, over)
if spare == '1' then redis.call('ZADD', SPARE, over < 0 and 'inf' or over, record) end
settle(account)
"""
"""Stores a record and, unless `record_index` is nil, replaces its index."""

ALL: Final = {
    "create": f"""local record_index = KEYS[7]
{_CREATE}
return 1
""",
    "claim": f"""local found = redis.call('HMGET', KEYS[1], 'd', 'v', 'r', 'f')
if found[1] and found[4] then
  return {{'{CLAIMED}', found[1], found[2], found[3], found[4], redis.call('EXISTS', KEYS[7])}}
end
local record_index = nil
{_CREATE}
redis.call('SET', KEYS[7], ARGV[11], 'PX', ARGV[12])
return 1
""",
    # Reading extends the expiry of a record with an idle time; the record's index must not expire before the record.
    "get": f"""{_NOW}{_USE}
local found = redis.call('HMGET', KEYS[1], 'd', 'v', 'e', 'i', 'x', 's', 'b', 'r', 'f')
if not found[1] or not found[9] then return false end
local fixed, idle = tonumber(found[3]), tonumber(found[4])
if idle >= 0 then use(KEYS[1], found[5], found[6], found[7], over_at(fixed, idle)) end
local vouched = ''
if found[8] ~= '' and found[9] == '' then
  vouched = redis.call('GET', found[8]) or ''
  local left = redis.call('PTTL', found[8])
  if fixed < 0 and left >= 0 and left < idle then redis.call('PEXPIRE', found[8], idle) end
end
return {{found[1], found[2], found[8], found[9], vouched, now}}
""",
    "record_index": f"""{_NOW}
return {{redis.call('GET', KEYS[1]) or '', now}}
""",
    "replace": f"""{_NOW}{_USE}
local ACCOUNTS, USED = KEYS[2], KEYS[3]
{_ACCOUNTS}{_ROSTER}
local record, record_index = KEYS[1], KEYS[4]
local sealed, head, version = ARGV[1], ARGV[2], ARGV[3]
local bytes, each, all = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local found = redis.call('HMGET', record, 'v', 'e', 'i', 'x', 'a', 's', 'b', 'r', 'f')
if found[1] ~= version or found[8] ~= (record_index or '') or found[9] ~= '' then return 0 end
local account, set, before = found[5], found[6], tonumber(found[7])
if bytes > before and ARGV[7] == '' then
  sweep()
  local why = refused(account, bytes - before, each, all)
  if why then return why end
end
if record_index and not enrol(record_index, ARGV[8], ARGV[9], ARGV[10], ARGV[11], ARGV[12]) then return '{CHANGED}' end
redis.call('ZREM', set, found[7] .. ':' .. record)
charge(account, bytes - before, set)
redis.call('HSET', record, 'd', sealed, 'h', head, 'v', version + 1, 'b', bytes, 'f', ARGV[7])
use(record, found[4], set, bytes, over_at(tonumber(found[2]), tonumber(found[3])))
settle(account)
return 1
""",
    "delete": f"""{_NOW}
local ACCOUNTS, USED = KEYS[2], KEYS[3]
{_ACCOUNTS}{_ROSTER}
if KEYS[4] and not enrol(KEYS[4], ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]) then return '{CHANGED}' end
local account = redis.call('HGET', KEYS[1], 'a')
local gone = drop(KEYS[1])
if account then settle(account) end
return gone
""",
    "owned": f"""{_NOW}
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
local all = {{}}
for _, name in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  local found = redis.call('HMGET', name, ARGV[1], 'v', 'c', 'r', 'f')
  if found[1] and found[5] then table.insert(all, {{name, unpack(found)}}) end
end
return all
""",
    "enrol": f"""{_ROSTER}
return enrol(KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]) and 1 or '{CHANGED}'
""",
    "hold": """
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
""",
    "renew": """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
""",
    "release": """
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
""",
}
