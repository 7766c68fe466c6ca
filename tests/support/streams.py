"""An HTTP client that records responses as lines of text, and events as they arrive."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from typing import Any

import httpx2

from conversations import usual


class Stream:
    """A response whose body is read incrementally."""

    def __init__(self, http: httpx2.AsyncClient, request: httpx2.Request) -> None:
        self.response: httpx2.Response | None = None
        self.last = ""
        self._http = http
        self._request = request
        self._events: asyncio.Queue[dict[str, str] | None] = asyncio.Queue()
        self._begun = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        response = self.response = await self._http.send(self._request, stream=True)
        self._begun.set()
        event: dict[str, str] = {}
        try:
            if not response.headers.get("content-type", "").startswith("text/event-stream"):
                await response.aread()
                return
            async for line in response.aiter_lines():
                if line and not line.startswith(":"):
                    key, _, value = line.partition(":")
                    event[key] = value.removeprefix(" ")
                elif event:
                    self._events.put_nowait(event)
                    event = {}
        finally:
            await response.aclose()
            self._events.put_nowait(None)

    async def head(self) -> str:
        """Return the status, the type, whether it has a session and, without a stream, the body."""
        async with asyncio.timeout(60):
            await self._begun.wait()
        assert self.response is not None
        headers = self.response.headers
        named = " session" if "mcp-session-id" in headers else ""
        line = f"{self.response.status_code} {headers.get('content-type', '-')}{named}"
        if "allow" in headers:
            line += f" allow={headers['allow']}"
        if headers.get("content-type", "").startswith("text/event-stream"):
            return line
        await self._reading
        return f"{line} {normal(self.response.text)}".rstrip()

    async def next(self) -> str:
        """Return the next event as a line, or the end of the stream."""
        async with asyncio.timeout(60):
            event = await self._events.get()
        if event is None:
            return "end"
        self.last = event.get("id") or self.last
        parts = ["id"] if event.get("id") else []
        parts += [f"retry={event['retry']}"] if "retry" in event else []
        parts += [f"event={event['event']}"] if "event" in event else []
        return " ".join([*parts, normal(event.get("data", ""))]).rstrip()

    async def rest(self) -> list[str]:
        """Return the remaining events."""
        lines = [await self.next()]
        while lines[-1] != "end":
            lines.append(await self.next())
        return lines

    async def is_silent(self) -> bool:
        """Return whether no event arrives for a while, and the stream stays open."""
        await asyncio.sleep(0.3)
        return self._events.empty()

    async def leave(self) -> None:
        """Close the connection."""
        self._reading.cancel()
        await asyncio.wait([self._reading])


class Caller:
    """A client, with or without a session."""

    def __init__(self, http: httpx2.AsyncClient, url: str, revision: str, session: str | None = None) -> None:
        self.http = http
        self.session = session
        self.has_cursors = revision >= "2025-11-25"
        self._url = url
        self._revision = revision

    def send(self, method: str, message: Any = None, **more: str) -> Stream:
        """Send a request. Underscores in header names become hyphens."""
        headers = dict(usual(message or {"method": ""}, self._revision, self.session))
        headers |= {name.replace("_", "-"): value for name, value in more.items()}
        body = None if message is None else json.dumps(message).encode()
        return Stream(self.http, self.http.build_request(method, self._url, headers=headers, content=body))

    async def post(self, message: Mapping[str, Any], **more: str) -> list[str]:
        """Return the complete response to a message."""
        stream = self.send("POST", message, **more)
        line = await stream.head()
        return [line, *(await stream.rest() if "event-stream" in line else [])]


def normal(text: str) -> str:
    """Return a message without its variable parts."""
    text = re.sub(r"reference [0-9a-f]+", "reference R", text)
    try:
        return json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))
    except ValueError:
        return text
