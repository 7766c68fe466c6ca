"""HTTP APIs in a thread that send scripted responses and record requests."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

Answer = Response | Mapping[str, Any] | list[Any] | tuple[int, Any] | str


@dataclass(frozen=True, slots=True)
class Asked:
    """A request: its method, its unmodified path and query, its headers, and its body."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class FakeApi:
    """The server: `url` is its base URL, `asked` contains the requests so far, and `answer` makes the response."""

    url: str
    answer: Callable[[Asked], Answer]
    asked: list[Asked] = field(default_factory=list)

    @property
    def last(self) -> Asked:
        return self.asked[-1]


@contextmanager
def api(answer: Callable[[Asked], Answer]) -> Iterator[FakeApi]:
    """Run an API during a block."""
    listening = socket.create_server(("127.0.0.1", 0))
    fake = FakeApi(f"http://127.0.0.1:{listening.getsockname()[1]}", answer)

    async def answered(request: Request) -> Response:
        asked = Asked(
            request.method,
            request.scope["raw_path"].decode(),
            request.scope["query_string"].decode(),
            dict(request.headers),
            await request.body(),
        )
        fake.asked.append(asked)
        given = fake.answer(asked)
        if isinstance(given, Response):
            return given
        status, value = given if isinstance(given, tuple) else (200, given)
        if isinstance(value, str):
            return Response(value, status, media_type="text/plain")
        return Response(json.dumps(value), status, media_type="application/json")

    methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "QUERY"]
    app = Starlette(routes=[Route("/{path:path}", answered, methods=methods)])
    runner = uvicorn.Server(uvicorn.Config(app, http="h11", log_level="critical", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=runner.run, args=([listening],))
    thread.start()
    try:
        yield fake
    finally:
        runner.should_exit = True
        thread.join()
        listening.close()
