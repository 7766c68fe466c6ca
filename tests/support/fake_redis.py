"""A Redis that fails on demand: a proxy in front of a real Redis.

The state also applies to open connections.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

WELL: Final = "well"
STOPPED: Final = "stopped"
HUNG: Final = "hung"
_READS: Final = frozenset({b"GET", b"PING", b"SMEMBERS", b"PUBLISH", b"HELLO", b"CLIENT", b"SELECT", b"SCRIPT"})

ERRORS: Final[Mapping[str, tuple[bytes, bool]]] = {
    "loading": (b"-LOADING Redis is loading the dataset in memory\r\n", True),
    "busy": (b"-BUSY Redis is busy running a script.\r\n", True),
    "unauthenticated": (b"-NOAUTH Authentication required.\r\n", True),
    "full": (b"-OOM command not allowed when used memory > 'maxmemory'.\r\n", False),
    "readonly": (b"-READONLY You can't write against a read only replica.\r\n", False),
    "broken disk": (b"-MISCONF Redis is configured to save RDB snapshots, but it's unable to persist.\r\n", False),
}
"""The error in each state, and whether all commands return it, or only writes."""

STATES: Final = (STOPPED, HUNG, *ERRORS)
"""The states in which writes fail."""


@dataclass
class FakeRedis:
    """The proxy.

    Attributes:
        state: How it currently responds.
        heard: The commands received in a failing state.
    """

    url: str = ""
    state: str = WELL
    heard: list[bytes] = field(default_factory=list[bytes])
    _links: set[asyncio.StreamWriter] = field(default_factory=set[asyncio.StreamWriter])

    def become(self, state: str) -> None:
        """Change the state. A server that stops closes its connections."""
        self.state = state
        self.heard.clear()
        if state == STOPPED:
            for link in self._links:
                link.close()

    async def _serve(self, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._links.add(writer)
        real, to_real = await asyncio.open_connection("127.0.0.1", port)
        passing = asyncio.create_task(_pass(real, writer))
        try:
            while self.state != STOPPED:
                command, raw = await _command(reader)
                if self.state != WELL:
                    self.heard.append(command)
                if self.state in ERRORS:
                    text, is_of_all = ERRORS[self.state]
                    if is_of_all or command not in _READS:
                        writer.write(text)
                        continue
                while self.state == HUNG:  # noqa: ASYNC110 - connections wait for different states
                    await asyncio.sleep(0.01)
                to_real.write(raw)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            passing.cancel()
            self._links.discard(writer)
            for link in (writer, to_real):
                link.close()


async def _pass(real: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await real.read(65536):
            writer.write(data)


async def _command(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """Return a command's name and all its bytes."""
    head = await reader.readuntil(b"\r\n")
    raw, name = head, b""
    for number in range(int(head[1:])):
        size = await reader.readuntil(b"\r\n")
        word = await reader.readexactly(int(size[1:]) + 2)
        raw += size + word
        if number == 0:
            name = word[:-2].upper()
    return name, raw


@asynccontextmanager
async def run_proxy(url: str) -> AsyncIterator[FakeRedis]:
    """Run a proxy in front of the Redis at `redis://127.0.0.1:PORT/…`."""
    front, _, rest = url.removeprefix("redis://127.0.0.1:").partition("/")
    fake = FakeRedis()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await fake._serve(int(front), reader, writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    fake.url = f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}/{rest}"
    try:
        yield fake
    finally:
        fake.become(STOPPED)
        server.close()
