"""The store in Redis or Valkey, which all processes of a server share.

Each method is one atomic command or script, which is never retried; `StateLost` reports whether it may have been
executed. Data is encrypted and authenticated, and keys are digests, so that others with access to Redis cannot read or
forge it.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import inspect
import json
import os
import re
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import defaultdict
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

from ..extras import Extra
from ..observability.logs import log
from ..values.json import is_list
from . import scripts
from .addresses import parse_address
from .budget import Budget, count_bytes
from .encryption import MIN_KEY_BYTES, DecryptionError, Encryption
from .outages import PATIENCE, Outages
from .record_index import Entry, HighWaterMarks, RecordIndex, choose_part
from .store import ClaimedRecord, Listener, Record, StateLost, StoreConfigurationError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from ..package import Package


# PSUBSCRIBE's special characters, which the user's prefix can contain.
_GLOB: Final = re.compile(r"[\\*?\[]")
_ESCAPED: Final = r"\\\g<0>"
"""The replacement that escapes a special character."""

_CONNECTIONS: Final = 64
"""The maximum number of connections per process."""

_READY: Final = 1.0
"""Seconds to wait for the store at startup."""

_CANCELLING: Final = 0.5
"""Seconds after which to cancel a task again."""

_LONGEST_REST: Final = 2.0
"""The maximum interval between attempts to resubscribe to the store, in seconds."""

_NUMBER: Final = re.compile(rb"0|[1-9][0-9]{0,14}")
"""Matches a number in Lua's notation."""

_NEVER: Final = -1
"""The value that scripts use instead of a missing time."""

_NUMBERS: Final = "record_indexes"
"""The topic for index number changes."""

_SLACK: Final = 1000
"""Milliseconds added to the expiries in an index, because time passes between reading and changing it."""

_TOKEN: Final = 16
"""The number of first bytes that identify a ciphertext."""

_MANY: Final = 64
"""If an index has more records without a fixed expiry, the store checks which of them still exist."""


def make_redis_store(url: str, package: Package) -> RedisStore:
    """Create a store for a Redis or Valkey URL. Raises StoreConfigurationError."""
    # The library must not retry a command that might have been executed.
    redis = _import_library("redis.asyncio")
    no_retry = redis.retry.Retry(_import_library("redis.backoff").NoBackoff(), 0)
    errors = _import_library("redis.exceptions")
    redis_error: type[Exception] = errors.RedisError
    tls_options = [name for name in inspect.signature(redis.SSLConnection).parameters if name.startswith("ssl_")]
    address = parse_address(url, tls_options)
    name: str = package.manifest["server"]["name"]
    prefix = f"stubwright:{name}" if address.prefix is None else address.prefix
    variable = f"{re.sub(r'[^A-Z0-9]+', '_', package.name.removesuffix('_mcp').upper())}_STATE_KEY"
    try:
        keys = _parse_keys(os.environ.get(variable, ""))
    except ValueError as error:
        form = "of `openssl rand -base64 32`, separated by spaces"
        raise StoreConfigurationError(f"{variable} has no keys {form}: {error}") from None
    options: dict[str, Any] = {
        **address.credentials,
        "socket_connect_timeout": PATIENCE,
        "socket_timeout": PATIENCE,
        "health_check_interval": PATIENCE,
        # If enabled, the library does not check whether an idle connection has closed.
        "maint_notifications_config": _import_library("redis.maint_notifications").MaintNotificationsConfig(
            enabled=False
        ),
    }
    try:
        pool = redis.BlockingConnectionPool.from_url(
            address.url, max_connections=_CONNECTIONS, timeout=PATIENCE, retry=no_retry, **options
        )
        # The library validates options only when it connects.
        connection = pool.connection_class(**pool.connection_kwargs)
        if isinstance(connection, redis.SSLConnection):
            connection.ssl_context.get()
    except (ValueError, TypeError, OSError, redis_error) as error:
        raise StoreConfigurationError(f"the state URL is invalid: {error}") from None
    if not keys:
        log().warning(
            "values in Redis are encrypted with a key that Redis also stores; set %s to use your own", variable
        )
    shown = address.shown
    refusals = (errors.ResponseError, errors.BusyLoadingError, errors.AuthenticationError, errors.AuthorizationError)
    outages = Outages(shown, (redis_error, OSError), refusals)
    budget = Budget.from_manifest(package.manifest)
    # Renewals are idempotent, so this client may retry.
    blocking = _import_library("redis").Redis.from_url(address.url, **options)
    return RedisStore(redis.Redis(connection_pool=pool), blocking, outages, prefix, keys, shown, budget)


def _import_library(name: str) -> Any:
    with Extra("redis", "state in Redis"):
        return importlib.import_module(name)


def _parse_keys(text: str) -> list[bytes]:
    """Parse base64 keys, separated by spaces. Raises ValueError."""
    # `openssl rand -base64` uses `+` and `/`.
    keys = [urlsafe_b64decode(word.replace("+", "-").replace("/", "_")) for word in text.split()]
    if any(len(key) < MIN_KEY_BYTES for key in keys):
        raise ValueError(f"a key has fewer than {MIN_KEY_BYTES} bytes")
    return keys


@dataclass(frozen=True, slots=True)
class _Version:
    """The data that a ciphertext is bound to: a record's name, version and index, and whether the version is final."""

    name: str
    version: int
    index: str
    final: str = ""

    @property
    def place(self) -> str:
        return f"{self.name} {self.version} {self.index} {self.final}"

    @property
    def head(self) -> str:
        return f"{self.place} head"


class RedisStore:
    """A store that several processes share."""

    is_shared = True

    def __init__(
        self,
        redis: Any,
        blocking: Any,
        outages: Outages,
        prefix: str,
        keys: Sequence[bytes] = (),
        url: str = "",
        budget: Budget | None = None,
    ) -> None:
        """Create a store.

        Args:
            redis: The client, a `redis.asyncio.Redis`.
            blocking: A `redis.Redis` for threads, which connects when renewing a lease.
            outages: Limits exchange times and logs outages.
            prefix: The prefix for all keys in Redis.
            keys: The encryption keys, newest first; by default, a key stored in Redis.
            url: The Redis URL to log.
            budget: The limits for stored bytes.
        """
        self.url = url
        self.pool = redis.connection_pool
        self.prefix = prefix
        self._redis = redis
        self._outages = outages
        self._given = list(keys)
        self._encryption: Encryption | None = Encryption(self._given) if keys else None
        self._listeners: defaultdict[str, list[Listener]] = defaultdict(list)
        self._blocking = blocking
        self._renew = blocking.register_script(scripts.ALL["renew"])
        self._scripts = {name: self._redis.register_script(text) for name, text in scripts.ALL.items()}
        self._budget = budget or Budget()
        self._seen = HighWaterMarks()
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self.exchange = outages.exchange

    async def create(
        self,
        kind: str,
        key: str,
        data: bytes,
        *,
        owner: str,
        ttl: float | None,
        idle: float | None = None,
        most: int | None = None,
        payer: str | None = None,
        head: bytes = b"",
        spare: bool = False,
        tracked: bool = False,
        room: int = 0,
    ) -> bool:
        """Implement `Store.create`."""
        name, paying = self._name(kind, key), owner if payer is None else payer
        limit = _NEVER if most is None else most
        names = [name, self._name(f"{kind}s", owner), f"{self.prefix}:created", *self._accounts]
        names.append(self._name("account", paying))
        first = _Version(name, 0, self._name_index(paying, name) if tracked else "")
        ciphertexts = [await self._encrypt(_pack(key, data), first.place), await self._encrypt(head, first.head)]
        arguments = [
            *ciphertexts,
            _to_milliseconds(ttl),
            _to_milliseconds(idle),
            limit,
            int(spare),
            count_bytes(key, data, head),
            room,
            *self._limits,
        ]

        def enrol(index: RecordIndex, now: int) -> bool:
            end = None if ttl is None else now + _to_milliseconds(ttl) + _SLACK
            lasts = end if end is not None else _NEVER if idle is None else now + _to_milliseconds(idle) + _SLACK
            index.put(name, Entry(0, end), lasts)
            return True

        if not tracked:
            return bool(self._check_budget(await self._script("create", names, arguments)))
        return bool(await self._change("create", names, arguments, first.index, enrol))

    async def claim(
        self, kind: str, key: str, data: bytes, *, owner: str, ttl: float, holder: str, lease: float
    ) -> ClaimedRecord | None:
        """Implement `Store.claim`."""
        name = self._name(kind, key)
        names = [name, self._name(f"{kind}s", owner), f"{self.prefix}:created", *self._accounts]
        names += [self._name("account", owner), self._name("lease", f"{kind}:{key}")]
        first = _Version(name, 0, "")
        ciphertexts = [await self._encrypt(_pack(key, data), first.place), await self._encrypt(b"", first.head)]
        limits = [_to_milliseconds(ttl), _NEVER, _NEVER, 0, count_bytes(key, data), 0, *self._limits]
        result = await self._script("claim", names, [*ciphertexts, *limits, holder, _to_milliseconds(lease)])
        if not is_list(result) or result[0] != scripts.CLAIMED.encode():
            self._check_budget(result)
            return None
        current = self._version(name, *result[2:5])
        plaintext = await self._decrypt(result[1], current.place)
        return ClaimedRecord(Record(_unpack(plaintext)[1] if plaintext else b"", current.version), bool(result[5]))

    async def get(self, kind: str, key: str) -> Record | None:
        """Implement `Store.get`."""
        name = self._name(kind, key)
        least: int | None = None
        while True:
            fields = await self._script("get", [name], [], writes=False)
            if fields is None:
                return None
            current = self._version(name, *fields[1:4])
            plaintext = await self._decrypt(fields[0], current.place)
            if plaintext is None:
                return None
            record = Record(_unpack(plaintext)[1], current.version)
            # The ciphertext is bound to both fields, so changing them invalidates it.
            if not current.index or current.final:
                return record
            index, now = await self._read(current.index, fields[4]), fields[5]
            needed = self._seen.find_number(current.index, now) if least is None else least
            if index.number >= needed:
                if index.holds(name, current.version, now):
                    return record
                break
            if least is not None:
                # The index was restored; replace it so that new processes do not trust it.
                await self._change("enrol", [], [], current.index, lambda _index, _now: False)
                break
            least = needed  # a change notification may have overtaken the read, so read again
        log().warning("%s in Redis was restored to an older version; it is treated as removed", name)
        return None

    async def measure(self, kind: str, key: str) -> int | None:
        """Implement `Store.measure`."""
        async with self.exchange(writes=False):
            length: int = await self._redis.hstrlen(self._name(kind, key), "d")
        return length or None

    async def replace(
        self,
        kind: str,
        key: str,
        data: bytes,
        *,
        version: int,
        head: bytes = b"",
        payer: str | None = None,
        final: bool = False,
    ) -> bool:
        """Implement `Store.replace`."""
        name = self._name(kind, key)
        new = _Version(name, version + 1, "" if payer is None else self._name_index(payer, name), "1" if final else "")
        ciphertexts = [await self._encrypt(_pack(key, data), new.place), await self._encrypt(head, new.head)]
        arguments = [*ciphertexts, version, count_bytes(key, data, head), *self._limits, new.final]
        names = [name, *self._accounts]

        def enrol(index: RecordIndex, now: int) -> bool:
            if not index.holds(name, version, now):
                return False
            entry = index.records.pop(name)
            if not final:
                index.records[name] = entry._replace(version=version + 1)
            return True

        if payer is None:
            return bool(self._check_budget(await self._script("replace", names, arguments)))
        return bool(await self._change("replace", names, arguments, new.index, enrol))

    async def delete(self, kind: str, key: str, *, payer: str | None = None) -> bool:
        """Implement `Store.delete`."""
        name = self._name(kind, key)
        names = [name, *self._accounts]
        if payer is None:
            return bool(await self._script("delete", names, []))

        # Change the index even if the record is missing, because it might be restored later.
        def strike(index: RecordIndex, _now: int) -> bool:
            index.records.pop(name, None)
            return True

        return bool(await self._change("delete", names, [], self._name_index(payer, name), strike))

    async def list_owned(self, kind: str, owner: str) -> list[tuple[str, Record]]:
        """Implement `Store.list_owned`."""
        return [
            (key, Record(data, version.version))
            for version, plaintext in await self._all(kind, owner, "d")
            for key, data in [_unpack(plaintext)]
        ]

    async def list_heads(self, kind: str, owner: str) -> list[bytes]:
        """Implement `Store.list_heads`."""
        return [plaintext for _, plaintext in await self._all(kind, owner, "h")]

    async def use_nonce(self, nonce: str, seconds: float, *, payer: str = "") -> bool:
        """Implement `Store.use_nonce`."""
        is_new: list[bool] = []

        def use_nonce(index: RecordIndex, now: int) -> bool:
            is_new.append(index.use_nonce(nonce, now + _to_milliseconds(seconds)))
            return is_new[-1]

        await self._change("enrol", [], [], self._name_index(f"{payer} marks", nonce), use_nonce)
        return is_new[-1]

    async def hold(self, name: str, holder: str, seconds: float) -> bool:
        """Implement `Store.hold`."""
        return bool(await self._script("hold", [self._name("lease", name)], [holder, _to_milliseconds(seconds)]))

    async def release(self, name: str, holder: str) -> None:
        """Implement `Store.release`."""
        await self._script("release", [self._name("lease", name)], [holder])

    def renew(self, name: str, holder: str, seconds: float) -> bool:
        """Renew a lease from any thread."""
        try:
            return bool(self._renew(keys=[self._name("lease", name)], args=[holder, _to_milliseconds(seconds)]))
        except self._outages.failures as error:
            raise StateLost(f"{self.url} does not respond", is_unknown=True) from error

    async def list_members(self, name: str) -> frozenset[str]:
        """Implement `Store.list_members`."""
        async with self.exchange(writes=False):
            members: set[bytes] = await self._redis.smembers(f"{self.prefix}:set:{name}")
        return frozenset(member.decode(errors="replace") for member in members)

    async def switch(self, name: str, member: str, *, on: bool) -> bool:
        """Implement `Store.switch`."""
        change = self._redis.sadd if on else self._redis.srem
        async with self.exchange(writes=True):
            return bool(await change(f"{self.prefix}:set:{name}", member))

    async def publish(self, topic: str, data: bytes) -> None:
        """Implement `Store.publish`."""
        channel = f"{self.prefix}:topic:{topic}"
        ciphertext = await self._encrypt(data, channel)
        async with self.exchange(writes=False):
            await self._redis.publish(channel, ciphertext)

    def listen(self, topic: str, listener: Listener) -> Callable[[], None]:
        """Implement `Store.listen`."""
        self._listeners[topic].append(listener)

        def unsubscribe() -> None:
            if listener in self._listeners[topic]:
                self._listeners[topic].remove(listener)

        return unsubscribe

    async def list_secrets(self) -> Sequence[bytes]:
        """Implement `Store.list_secrets`."""
        if self._given:
            return self._given
        name = f"{self.prefix}:secret"
        async with self.exchange(writes=False):
            secret: bytes | None = await self._redis.get(name)
        if secret is None:
            async with self.exchange(writes=True):
                # If several processes start concurrently, all use the first one's secret.
                await self._redis.set(name, secrets.token_bytes(MIN_KEY_BYTES), nx=True)
                secret = await self._redis.get(name)
        if secret is None or len(secret) < MIN_KEY_BYTES:
            self._outages.record_unreadable(f"{name} is missing or not a secret")
            raise StateLost(f"{name} is missing or not a secret")
        return [secret]

    async def check(self) -> bool:
        """Implement `Store.check`."""
        with suppress(StateLost):
            async with self.exchange(writes=False):
                return bool(await self._redis.ping())
        return False

    @asynccontextmanager
    async def run(self) -> AsyncGenerator[None, None]:
        """Implement `Store.run`."""
        is_subscribed = asyncio.Event()
        pump = asyncio.create_task(self._pump(is_subscribed))
        # The server also starts if the store is unavailable; `_pump` retries.
        with suppress(TimeoutError):
            await asyncio.wait_for(is_subscribed.wait(), _READY)
        try:
            yield
        finally:
            while not pump.done():  # the library may mistake cancellation while connecting for a lost connection
                pump.cancel()
                await asyncio.wait([pump], timeout=_CANCELLING)
            await self.pool.disconnect()
            self._blocking.close()

    async def _pump(self, is_subscribed: asyncio.Event) -> None:
        """Receive published messages, and reconnect after failures."""
        failures = 0
        gone: tuple[type[Exception], ...] = (*self._outages.failures, StateLost)
        while True:
            try:
                self._outages.record_mode(await self._read_mode())
                async with self._redis.pubsub() as channels:
                    await channels.psubscribe(f"{_GLOB.sub(_ESCAPED, self.prefix)}:topic:*")
                    # Listeners may have missed messages while disconnected.
                    await self._notify_all(None)
                    is_subscribed.set()
                    failures = 0
                    self._outages.mark_up()
                    while True:
                        message = await channels.get_message(ignore_subscribe_messages=True, timeout=PATIENCE)
                        if message is not None:
                            await self._receive(message["channel"].decode(errors="replace"), message["data"])
            except gone as error:
                if not isinstance(error, StateLost):  # the outage is already logged
                    self._outages.mark_down(error)
                failures += 1
                await asyncio.sleep(min(_LONGEST_REST, 0.05 * 2**failures))

    async def _read_mode(self) -> str:
        """Return the server's mode, such as `standalone`, or an empty string if the mode is unknown.

        The mode is in the response to HELLO, which no ACL forbids.
        """
        try:
            answer: Any = await self._redis.execute_command("HELLO")
        except self._outages.refusals:
            return ""  # a proxy may not support HELLO
        fields = answer if isinstance(answer, dict) else dict(zip(answer[::2], answer[1::2], strict=True))
        return bytes(fields.get(b"mode", b"")).decode(errors="replace")

    async def _receive(self, channel: str, ciphertext: bytes) -> None:
        data = await self._decrypt(ciphertext, channel)
        if data is None:
            return
        topic = channel.removeprefix(f"{self.prefix}:topic:")
        if topic == _NUMBERS:
            self._seen.record(*json.loads(data))
        else:
            await self._notify(topic, data)

    async def _notify_all(self, data: bytes | None) -> None:
        for topic in [*self._listeners]:
            await self._notify(topic, data)

    async def _notify(self, topic: str, data: bytes | None) -> None:
        for listener in [*self._listeners.get(topic, ())]:
            try:
                await listener(data)
            except StateLost:
                raise
            except Exception:  # noqa: BLE001 - call the other listeners
                log().exception("a listener for %s failed", topic)

    def _name(self, kind: str, key: str) -> str:
        # 24 bytes are 32 characters of base64, without padding.
        digest = hashlib.sha256(f"{kind}:{key}".encode()).digest()[:24]
        return f"{self.prefix}:{kind}:{urlsafe_b64encode(digest).decode()}"

    @property
    def _accounts(self) -> tuple[str, str]:
        return f"{self.prefix}:accounts", f"{self.prefix}:used"

    @property
    def _limits(self) -> tuple[int, int]:
        return self._budget.each, self._budget.all

    def _check_budget(self, result: Any) -> Any:
        if is_list(result):
            own, total, wait = map(int, result[1:])
            seconds = None if wait == _NEVER else wait / 1000
            raise self._budget.make_exception("caller" if result[0] == b"caller" else "server", own, total, seconds)
        return result

    def _name_index(self, payer: str, name: str) -> str:
        return self._name("record_index", f"{payer} {choose_part(name)}")

    async def _all(self, kind: str, owner: str, part: str) -> list[tuple[_Version, bytes]]:
        """Return one decrypted field of each of an owner's records of one kind, oldest first."""
        entries: list[tuple[int, _Version, bytes]] = []
        for name, ciphertext, version, created, index, final in await self._script(
            "owned", [self._name(f"{kind}s", owner)], [part], writes=False
        ):
            current = self._version(name.decode(errors="replace"), version, index, final)
            if (
                plaintext := await self._decrypt(ciphertext, current.place if part == "d" else current.head)
            ) is not None:
                entries.append((self._number(created), current, plaintext))
        return [(current, plaintext) for _, current, plaintext in sorted(entries, key=lambda entry: entry[0])]

    def _version(self, name: str, version: bytes | None, index: bytes | None, final: bytes | None) -> _Version:
        index_name, is_final = ((field or b"").decode(errors="replace") for field in (index, final))
        return _Version(name, self._number(version), index_name, is_final)

    async def _read(self, name: str, ciphertext: bytes) -> RecordIndex:
        """Decrypt an index, and store its number as the highest number seen."""
        plaintext = await self._decrypt(ciphertext, name) if ciphertext else None
        if plaintext is None:
            return RecordIndex()
        index = RecordIndex.load(plaintext)
        self._seen.record(name, index.number, index.end)
        return index

    async def _change(
        self,
        script: str,
        names: Sequence[str],
        arguments: Sequence[Any],
        index: str,
        edit: Callable[[RecordIndex, int], bool],
    ) -> Any:
        """Change an index and its records atomically. Return 0 if `edit` changes nothing.

        A restored index is replaced first.
        """
        # The script detects concurrent changes by other processes; the lock serializes changes in this process.
        turn = self._turns.setdefault(index, asyncio.Lock())
        while True:
            async with turn:
                # Do this before reading the index, because a later notification would make a current index seem old.
                seen = self._seen.find_number(index)
                ciphertext, now = await self._script("record_index", [index], [], writes=False)
                new = await self._read(index, ciphertext)
                if new.number < seen and self._seen.find_number(index, now):
                    log().warning(
                        "%s in Redis was restored to an older version; its records are treated as removed", index
                    )
                    await self._enrol("enrol", [], [], index, ciphertext, self._seen.make_empty(index, now))
                    continue
                new.expire(now)
                await self._forget_unused(new)
                if not edit(new, now):
                    return 0
                result = await self._enrol(script, names, arguments, index, ciphertext, new)
                if result is not None:
                    return result

    async def _enrol(
        self, script: str, names: Sequence[str], arguments: Sequence[Any], name: str, before: bytes, index: RecordIndex
    ) -> Any:
        """Replace an index. Return the result of the script, or `None` if another process changed the index."""
        index.number += 1
        channel = f"{self.prefix}:topic:{_NUMBERS}"
        note = await self._encrypt(json.dumps([name, index.number, index.end]).encode(), channel)
        roster_arguments = [before[:_TOKEN], await self._encrypt(index.dump(), name), index.over, channel, note]
        result = self._check_budget(await self._script(script, [*names, name], [*arguments, *roster_arguments]))
        if result == scripts.CHANGED.encode():
            return None
        # `delete` returns 0 for a missing record, although the index has changed.
        if result or script == "delete":
            self._seen.record(name, index.number, index.end)
        return result

    async def _forget_unused(self, index: RecordIndex) -> None:
        """Remove from an index the records without a fixed expiry that no longer exist."""
        endless = [name for name, entry in index.records.items() if entry.end is None]
        if len(endless) < _MANY:
            return
        async with self.exchange(writes=False), self._redis.pipeline(transaction=False) as steps:
            for name in endless:
                steps.exists(name)
            existing = await steps.execute()
        for name, exists in zip(endless, existing, strict=True):
            if not exists:
                del index.records[name]

    async def _script(self, script: str, names: Sequence[str], arguments: Sequence[Any], *, writes: bool = True) -> Any:
        async with self.exchange(writes=writes):
            return await self._scripts[script](keys=names, args=arguments)

    def _number(self, field: bytes | None) -> int:
        if field is None or not _NUMBER.fullmatch(field):
            self._outages.record_unreadable("a record contains an invalid number")
            raise StateLost(f"data at {self.url} was modified by another program")
        return int(field)

    async def _encrypt(self, data: bytes, place: str) -> bytes:
        encryption = self._encryption or await self._load_encryption()
        return encryption.encrypt(data, place)

    async def _decrypt(self, ciphertext: bytes, place: str) -> bytes | None:
        """Decrypt a value, or return `None` if the value was not encrypted with our keys."""
        encryption = self._encryption or await self._load_encryption()
        try:
            return encryption.decrypt(ciphertext, place)
        except DecryptionError:
            if not self._given:  # Redis might have lost the old secret
                with suppress(DecryptionError):
                    return (await self._load_encryption()).decrypt(ciphertext, place)
            log().warning("%s in Redis was encrypted with an unknown key; it is treated as removed", place)
            return None

    async def _load_encryption(self) -> Encryption:
        self._encryption = Encryption(await self.list_secrets())
        return self._encryption


def _to_milliseconds(seconds: float | None) -> int:
    return _NEVER if seconds is None else max(1, round(seconds * 1000))


def _pack(key: str, data: bytes) -> bytes:
    name = key.encode()
    # The data includes the key for `list_owned`, because the name in Redis is a digest.
    return len(name).to_bytes(4, "big") + name + data


def _unpack(packed: bytes) -> tuple[str, bytes]:
    end = 4 + int.from_bytes(packed[:4], "big")
    return packed[4:end].decode(), packed[end:]
