"""Annotations of embedded resources in tools and prompts, in all revisions (MCP 2025-06-18, server/tools)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import httpx2
import pytest

import prompt_ends
from conversations import REVISIONS, handshake, request, usual
from packages import generate, imported, manifest, tool
from serving import asgi

ends_are_prompt = prompt_ends.ends_are_prompt

ANNOTATIONS = {"audience": ["assistant"], "priority": 0.5, "lastModified": "2025-05-03T14:30:00Z"}
BLOCK = {
    "type": "resource",
    "resource": {"uri": "docs://a", "mimeType": "text/plain", "text": "A"},
    "annotations": ANNOTATIONS,
    "_meta": {"example.com/a": 1},
}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("annotated")
    prompts: list[Any] = [
        {"name": "handled"},
        {
            "name": "written",
            "stubwright": {"messages": [{"resource": BLOCK["resource"], "annotations": ANNOTATIONS}]},
        },
    ]
    with imported(folder, generate(folder, manifest([tool("one")], name="annotated", prompts=prompts))) as module:
        yield module


@pytest.mark.parametrize("revision", [*REVISIONS, "2026-07-28"])
def test_they_arrive(revision: str, package: ModuleType) -> None:
    block = package.embedded(
        "docs://a",
        text="A",
        mime_type="text/plain",
        audience="assistant",
        priority=0.5,
        last_modified="2025-05-03T14:30:00Z",
        meta={"example.com/a": 1},
    )
    handlers = SimpleNamespace(one=lambda args, ctx: block, prompt_handled=lambda args, ctx: block)
    app = package.asgi_app(handlers)
    with asgi(app) as url, httpx2.Client(timeout=60) as http:
        session = None
        if revision != "2026-07-28":
            first = handshake(revision)
            opened = http.post(f"{url}/mcp", json=first, headers=dict(usual(first, revision, None)))
            session = opened.headers["mcp-session-id"]

        def ask(method: str, name: str) -> Any:
            message = request(1, method, {"name": name}, stateless=session is None)
            text = http.post(f"{url}/mcp", json=message, headers=dict(usual(message, revision, session))).text
            [line] = [line for line in text.splitlines() if '"result"' in line]
            return json.loads(line.removeprefix("data: "))["result"]

        assert ask("tools/call", "one")["content"] == [BLOCK]
        assert ask("prompts/get", "handled")["messages"] == [{"role": "user", "content": BLOCK}]
        written = {key: value for key, value in BLOCK.items() if key != "_meta"}
        assert ask("prompts/get", "written")["messages"] == [{"role": "user", "content": written}]
