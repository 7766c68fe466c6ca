"""HTTP clients read trusted certificates once an hour, and again when the environment changes."""

from __future__ import annotations

import asyncio
import ssl
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest

from stubwright_runtime.client.rpc.connection import RpcConnection
from stubwright_runtime.client.transports.bounds import Bounds
from stubwright_runtime.client.transports.http import HttpTransport
from stubwright_runtime.http import calls
from stubwright_runtime.network import certificates
from stubwright_runtime.network.errors import SettingError
from stubwright_runtime.network.transport import DirectTransport


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Keep the time, so that no test crosses the hour; its last item is now."""
    times = [time.monotonic()]
    monkeypatch.setattr(time, "monotonic", lambda: times[-1])
    return times


async def _ignore(*_: object) -> dict[str, Any]:
    return {}


def test_clients_share_what_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[object] = []
    monkeypatch.setattr(httpx2.AsyncHTTPTransport, "__init__", lambda _, verify, **options: given.append(verify))
    monkeypatch.setattr(DirectTransport, "__init__", lambda _, context: given.append(context))
    hear: Any = _ignore
    transport = HttpTransport("https://localhost/mcp", {}, Bounds())
    asyncio.run(transport.open(RpcConnection(transport, Bounds(), _ignore, hear)))
    own = len(given)
    calls._client()
    assert len(given) > own > 0
    assert all(context is certificates.share_tls_context() for context in given)


def test_a_file_of_the_environment_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    usual = certificates.share_tls_context()
    with monkeypatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(tmp_path / "missing.pem"))
        with pytest.raises(SettingError, match=r"missing\.pem': No such file"):
            certificates.share_tls_context()
        with pytest.raises(SettingError, match=r"missing\.pem': No such file"):
            certificates.make_tls_context()
    assert certificates.share_tls_context() is usual
    assert usual.verify_mode is ssl.CERT_REQUIRED
    assert usual.check_hostname


def test_they_are_read_anew_after_an_hour(clock: list[float]) -> None:
    before = certificates.share_tls_context()
    clock.append(clock[-1] + 3600)
    after = certificates.share_tls_context()
    assert after is not before
    assert certificates.share_tls_context() is after
