"""The store in Redis or Valkey: all processes that serve one manifest see the same, and it outlives them.

Takes and gives what the protocol says. Each method is one command or one script, so that it happens whole or not at
all, and none is sent twice: whether one that got no answer was heard, nobody knows, and `StateLost` says so. What lies
there is sealed, and its names are digests: who reads Redis learns nothing of it, and who writes there makes nothing of
it.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import os
import re
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import defaultdict
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from ..logs import logger
from . import scripts
from .outages import PATIENCE, Outages
from .seals import SHORTEST, Broken, Seals
from .store import Listener, Record, StateLost, Unfit

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from ..package import Package

_LOG: Final = logger(__name__)

_OPTIONS: Final = ("prefix", "db", "username", "password", "client_name")
"""What the query of a URL may have beside `ssl_…`; what else the library takes would change how it is used here."""

_GLOB: Final = re.compile(r"[\\*?\[\]^-]")
_ESCAPED: Final = r"\\\g<0>"
"""What means something in a pattern of channels, and what it becomes so that it does not."""

_CONNECTIONS: Final = 64
"""Connections of one process, at most; whoever needs another waits."""

_READY: Final = 1.0
"""Seconds that a start waits for the store, before it goes on without."""

_LONGEST_REST: Final = 2.0
"""Seconds between two attempts to hear the store again, at most."""

_NUMBER: Final = re.compile(rb"0|[1-9][0-9]{0,14}")
"""A number as Lua writes it again after adding to it."""

_NEVER: Final = -1
"""What scripts take for "no such time"."""


def redis_store(url: str, package: Package) -> RedisStore:
    """The store at the URL of a Redis or Valkey server. Raises Unfit."""
    redis = _library("redis.asyncio")
    no_retry = redis.retry.Retry(_library("redis.backoff").NoBackoff(), 0)
    errors = _library("redis.exceptions")
    failure: type[Exception] = errors.RedisError
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    if unknown := sorted(name for name in options if name not in _OPTIONS and not name.startswith("ssl_")):
        raise Unfit(f"the URL of the state has {', '.join(unknown)}; it may have {', '.join(_OPTIONS)} and ssl_…")
    name: str = package.manifest["server"]["name"]
    prefix = options.pop("prefix", f"toolwright:{name}")
    variable = f"{re.sub(r'[^A-Z0-9]+', '_', package.name.removesuffix('_mcp').upper())}_STATE_KEY"
    try:
        keys = _keys(os.environ.get(variable, ""))
    except ValueError as error:
        made = "such as `openssl rand -base64 32` makes, with spaces between"
        raise Unfit(f"{variable} holds no keys {made}: {error}") from None
    try:
        pool = redis.BlockingConnectionPool.from_url(
            parts._replace(query=urlencode(options)).geturl(),
            max_connections=_CONNECTIONS,
            timeout=PATIENCE,
            socket_connect_timeout=PATIENCE,
            socket_timeout=PATIENCE,
            health_check_interval=PATIENCE,
            retry=no_retry,
            # With these, the library does not look whether a connection that it kept has ended meanwhile.
            maint_notifications_config=_library("redis.maint_notifications").MaintNotificationsConfig(enabled=False),
        )
    except (ValueError, TypeError, failure) as error:
        raise Unfit(f"the URL of the state is not understood: {error}") from None
    if not keys:
        _LOG.warning(
            "what is kept in Redis is sealed with a key that lies there, too; %s gives one of your own", variable
        )
    shown = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()
    refusals = (errors.ResponseError, errors.BusyLoadingError, errors.AuthenticationError, errors.AuthorizationError)
    outages = Outages(shown, (failure, OSError), refusals)
    return RedisStore(redis.Redis(connection_pool=pool), outages, prefix, keys, shown)


def _library(name: str) -> Any:
    """A module of the library, by its name: a package is whole without it, as long as nobody wants Redis."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise Unfit("state in Redis needs the package redis: pip install 'redis>=8'") from None


def _keys(text: str) -> list[bytes]:
    """The keys in a text. Raises ValueError."""
    keys = [urlsafe_b64decode(word.replace("+", "-").replace("/", "_")) for word in text.split()]
    if any(len(key) < SHORTEST for key in keys):
        raise ValueError(f"one has fewer than {SHORTEST} bytes")
    return keys


class RedisStore:
    """What many processes keep together."""

    is_shared = True

    def __init__(
        self,
        redis: Any,
        outages: Outages,
        prefix: str,
        keys: Sequence[bytes] = (),
        url: str = "",
    ) -> None:
        """Take a client of Redis.

        Args:
            redis: The client, a `redis.asyncio.Redis`.
            outages: What ends exchanges that take too long, and tells the log.
            prefix: What the names of all that is kept begin with.
            keys: Keys that seal what is kept, the newest first; by default there is one in Redis.
            url: Where Redis is, as the log may have it.
        """
        self.url = url
        self.pool = redis.connection_pool
        self.prefix = prefix
        self._redis = redis
        self._outages = outages
        self._given = list(keys)
        self._seals: Seals | None = Seals(self._given) if keys else None
        self._listeners: defaultdict[str, list[Listener]] = defaultdict(list)
        self._scripts = {name: self._redis.register_script(text) for name, text in scripts.ALL.items()}
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
    ) -> bool:
        """See the protocol."""
        name = self._name(kind, key)
        sealed = await self._sealed(_packed(key, data), name)
        limit = _NEVER if most is None else most
        names = [name, self._name(f"{kind}s", owner), f"{self.prefix}:created"]
        return bool(await self._script("create", names, [sealed, _ms(ttl), _ms(idle), limit]))

    async def get(self, kind: str, key: str) -> Record | None:
        """See the protocol."""
        name = self._name(kind, key)
        found = await self._script("get", [name], [], writes=False)
        if found is None:
            return None
        opened = await self._opened(found[0], name)
        return None if opened is None else Record(_unpacked(opened)[1], self._number(found[1]))

    async def replace(self, kind: str, key: str, data: bytes, *, version: int) -> bool:
        """See the protocol."""
        name = self._name(kind, key)
        return bool(await self._script("replace", [name], [await self._sealed(_packed(key, data), name), version]))

    async def delete(self, kind: str, key: str) -> bool:
        """See the protocol."""
        return bool(await self._script("delete", [self._name(kind, key)], []))

    async def owned(self, kind: str, owner: str) -> list[tuple[str, Record]]:
        """See the protocol."""
        found: list[tuple[int, str, Record]] = []
        every = await self._script("owned", [self._name(f"{kind}s", owner)], [], writes=False)
        for name, sealed, version, created in every:
            if (opened := await self._opened(sealed, name.decode(errors="replace"))) is not None:
                key, data = _unpacked(opened)
                found.append((self._number(created), key, Record(data, self._number(version))))
        return [(key, record) for _, key, record in sorted(found, key=lambda one: one[0])]

    async def spend(self, mark: str, seconds: float) -> bool:
        """See the protocol."""
        async with self.exchange(writes=True):
            return bool(await self._redis.set(self._name("mark", mark), b"", nx=True, px=_ms(seconds)))

    async def hold(self, name: str, holder: str, seconds: float) -> bool:
        """See the protocol."""
        return bool(await self._script("hold", [self._name("lease", name)], [holder, _ms(seconds)]))

    async def release(self, name: str, holder: str) -> None:
        """See the protocol."""
        await self._script("release", [self._name("lease", name)], [holder])

    async def members(self, name: str) -> frozenset[str]:
        """See the protocol."""
        async with self.exchange(writes=False):
            found: set[bytes] = await self._redis.smembers(f"{self.prefix}:set:{name}")
        return frozenset(member.decode(errors="replace") for member in found)

    async def switch(self, name: str, member: str, *, on: bool) -> bool:
        """See the protocol."""
        change = self._redis.sadd if on else self._redis.srem
        async with self.exchange(writes=True):
            return bool(await change(f"{self.prefix}:set:{name}", member))

    async def publish(self, topic: str, data: bytes) -> None:
        """See the protocol."""
        channel = f"{self.prefix}:topic:{topic}"
        sealed = await self._sealed(data, channel)
        async with self.exchange(writes=False):
            await self._redis.publish(channel, sealed)

    def hear(self, topic: str, listener: Listener) -> Callable[[], None]:
        """See the protocol."""
        self._listeners[topic].append(listener)

        def leave() -> None:
            if listener in self._listeners[topic]:
                self._listeners[topic].remove(listener)

        return leave

    async def secrets(self) -> Sequence[bytes]:
        """See the protocol."""
        if self._given:
            return self._given
        name = f"{self.prefix}:secret"
        async with self.exchange(writes=False):
            found: bytes | None = await self._redis.get(name)
        if found is None:
            async with self.exchange(writes=True):
                await self._redis.set(name, secrets.token_bytes(SHORTEST), nx=True)
                found = await self._redis.get(name)
        if found is None or len(found) < SHORTEST:
            self._outages.unreadable(f"{name} is gone, or not a secret")
            raise StateLost(f"{name} is gone, or not a secret")
        return [found]

    async def check(self) -> bool:
        """See the protocol."""
        with suppress(StateLost):
            async with self.exchange(writes=False):
                return bool(await self._redis.ping())
        return False

    @asynccontextmanager
    async def run(self) -> AsyncGenerator[None, None]:
        """See the protocol."""
        heard = asyncio.Event()
        pump = asyncio.create_task(self._pump(heard))
        with suppress(TimeoutError):
            await asyncio.wait_for(heard.wait(), _READY)
        try:
            yield
        finally:
            pump.cancel()
            await asyncio.wait([pump])
            await self.pool.disconnect()

    async def _pump(self, heard: asyncio.Event) -> None:
        """Hear what is published, and go on after each loss."""
        failures = 0
        gone: tuple[type[Exception], ...] = (*self._outages.failures, StateLost)
        while True:
            try:
                async with self._redis.pubsub() as channels:
                    await channels.psubscribe(f"{_GLOB.sub(_ESCAPED, self.prefix)}:topic:*")
                    await self._tell_all(None)
                    heard.set()
                    failures = 0
                    self._outages.found()
                    while True:
                        message = await channels.get_message(ignore_subscribe_messages=True, timeout=PATIENCE)
                        if message is not None:
                            await self._heard(message["channel"].decode(errors="replace"), message["data"])
            except gone as error:
                if not isinstance(error, StateLost):  # which the log has
                    self._outages.lost(error)
                failures += 1
                await asyncio.sleep(min(_LONGEST_REST, 0.05 * 2**failures))

    async def _heard(self, channel: str, sealed: bytes) -> None:
        data = await self._opened(sealed, channel)
        if data is not None:
            await self._tell(channel.removeprefix(f"{self.prefix}:topic:"), data)

    async def _tell_all(self, data: bytes | None) -> None:
        for topic in [*self._listeners]:
            await self._tell(topic, data)

    async def _tell(self, topic: str, data: bytes | None) -> None:
        for listener in [*self._listeners.get(topic, ())]:
            try:
                await listener(data)
            except StateLost:
                raise
            except Exception:  # noqa: BLE001 - a listener that fails must not keep others from hearing
                _LOG.exception("what was published on %s could not be heard", topic)

    def _name(self, kind: str, key: str) -> str:
        digest = hashlib.sha256(f"{kind}:{key}".encode()).digest()[:24]
        return f"{self.prefix}:{kind}:{urlsafe_b64encode(digest).decode()}"

    async def _script(self, script: str, names: Sequence[str], arguments: Sequence[Any], *, writes: bool = True) -> Any:
        async with self.exchange(writes=writes):
            return await self._scripts[script](keys=names, args=arguments)

    def _number(self, field: bytes | None) -> int:
        """A number in Redis. Raises StateLost where somebody else wrote it."""
        if field is None or not _NUMBER.fullmatch(field):
            self._outages.unreadable("a number of a record is not a number")
            raise StateLost(f"what {self.url} holds is not as it was kept")
        return int(field)

    async def _sealed(self, data: bytes, place: str) -> bytes:
        seals = self._seals or await self._new_seals()
        return seals.seal(data, place)

    async def _opened(self, sealed: bytes, place: str) -> bytes | None:
        """What was sealed; `None` where somebody else made it."""
        seals = self._seals or await self._new_seals()
        try:
            return seals.open(sealed, place)
        except Broken:
            if not self._given:  # the secret may be a new one, where Redis had lost all
                with suppress(Broken):
                    return (await self._new_seals()).open(sealed, place)
            _LOG.warning("%s in Redis was sealed with a key that this server has not; it counts as gone", place)
            return None

    async def _new_seals(self) -> Seals:
        self._seals = Seals(await self.secrets())
        return self._seals


def _ms(seconds: float | None) -> int:
    return _NEVER if seconds is None else max(1, round(seconds * 1000))


def _packed(key: str, data: bytes) -> bytes:
    name = key.encode()
    return len(name).to_bytes(4, "big") + name + data


def _unpacked(packed: bytes) -> tuple[str, bytes]:
    end = 4 + int.from_bytes(packed[:4], "big")
    return packed[4:end].decode(), packed[end:]
