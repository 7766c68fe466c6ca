"""A client with a known revision of its server starts with the handshake, and still detects a newer server."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import pytest

from stubwright_runtime.client.core.binding import Binding
from stubwright_runtime.package import Package

pytestmark = pytest.mark.anyio

_SERVER: Final = """
import json, sys
modern, log = sys.argv[1] == "2026-07-28", open(sys.argv[2], "a")
for line in sys.stdin:
    message = json.loads(line)
    print(message["method"], file=log, flush=True)
    answer = {"jsonrpc": "2.0", "id": message.get("id")}
    info = {"name": "old", "version": "1"}
    if message["method"] == "initialize" and not modern:
        answer["result"] = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": info}
    elif message["method"] == "initialize":
        data = {"supported": ["2026-07-28"], "requested": "2025-11-25"}
        answer["error"] = {"code": -32022, "message": "unsupported", "data": data}
    elif message["method"] == "server/discover" and modern:
        answer["result"] = {
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}, "serverInfo": info
        }
    elif "id" in message:
        answer["error"] = {"code": -32601, "message": "Method not found"}
    if "id" in message:
        print(json.dumps(answer), flush=True)
"""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize(
    ("known", "spoken", "methods"),
    [
        (None, "2025-06-18", ["server/discover", "initialize", "notifications/initialized"]),
        ("2025-06-18", "2025-06-18", ["initialize", "notifications/initialized"]),
        ("2025-06-18", "2026-07-28", ["initialize", "server/discover"]),
        ("2026-07-28", "2026-07-28", ["server/discover"]),
    ],
)
async def test_the_first_request(known: str | None, spoken: str, methods: list[str], tmp_path: Path) -> None:
    package = Package("known")
    package.__dict__["manifest"] = {"client": {} if known is None else {"revision": known}}
    client: type[Binding] = type("Client", (Binding,), {"_package": package})
    log = tmp_path / "log"
    async with client.connect([sys.executable, "-c", _SERVER, spoken, str(log)]) as connected:
        assert connected.raw.protocol_version == spoken
    assert log.read_text().split() == methods
