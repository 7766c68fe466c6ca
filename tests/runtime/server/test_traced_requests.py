"""Telemetry's state between messages, and requests answered ahead of uvicorn with telemetry."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from stubwright_runtime.mcp.revisions import Revision
from stubwright_runtime.server.core.request import Peer
from stubwright_runtime.server.observability.telemetry import Telemetry
from stubwright_runtime.server.transports.http.listener import direct
from stubwright_runtime.server.transports.http.listener.direct import DirectReader, Endpoint

CLIENT = ("127.0.0.1", 5000)
HEAD = b"POST /mcp HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n"


class _Package:
    manifest: dict[str, Any] = {}  # noqa: RUF012 - it is never changed
    tools = ("known",)
    prompts = ()

    def resolve_alias(self, name: str) -> str:
        return name


def _call(method: str, **params: Any) -> Any:
    revision = Revision.from_date("2026-07-28")
    return SimpleNamespace(
        method=method, id=1, params=params, revision=revision, transport="stdio", peer=None, traceparent=None
    )


def test_only_descriptions_of_what_exists_are_kept() -> None:
    telemetry = Telemetry(_Package())  # type: ignore[arg-type]
    messages = [_call("tools/call", name=name) for name in ("known", "invented", ["known"])]
    messages += [_call("invented/method"), *(_call("resources/read", uri=f"note://{number}") for number in range(3))]
    for message in messages:
        telemetry.begin(message).end(0.1, {"isError": True}, None, None)
    kept = telemetry._descriptions
    assert [key[:2] for key in kept] == [("tools/call", "known"), ("tools/call", None), ("resources/read", None)]
    assert not any("error.type" in each.metric or "mcp.resource.uri" in each.span for each in kept.values())


@dataclass
class _Line:
    address: str = CLIENT[0]
    client: tuple[str, int] | None = CLIENT
    is_idle: bool = True
    fed: list[bytes] = field(default_factory=list)

    def feed(self, data: bytes) -> None:
        self.fed.append(data)

    def on_request(self) -> None:
        pass

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        work.close()


@pytest.mark.parametrize("is_observed", [True, False])
def test_a_client_that_a_proxy_names_is_read_by_uvicorn_if_traced(
    monkeypatch: pytest.MonkeyPatch, is_observed: bool
) -> None:
    taken: list[Peer | None] = []

    def handle(_head: object, _body: bytes, _connect: object, *, peer: Peer | None, **_: Any) -> None:
        taken.append(peer)

    monkeypatch.setattr(direct, "is_observed", lambda: is_observed)
    endpoint = Endpoint(
        SimpleNamespace(handle=handle, parse_head=lambda _: SimpleNamespace(session="s")),  # type: ignore[arg-type]
        "/mcp",
        "p",
    )
    line, forwarded = _Line(), HEAD + b"X-Forwarded-For: 192.0.2.1\r\n\r\n{}"
    DirectReader(endpoint, line).read(HEAD + b"\r\n{}")  # type: ignore[arg-type]
    DirectReader(endpoint, line).read(forwarded)  # type: ignore[arg-type]
    assert taken == ([Peer(CLIENT, "s", "1.1")] if is_observed else [None, None])
    assert line.fed == ([forwarded] if is_observed else [])
