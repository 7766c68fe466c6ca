"""Attacks sessions with the largest handshakes, in ended and in open sessions, and with cancellations at any time.

    python bench/torture/sessions.py [--quick]

Prints the memory of the server before and after, and how many cancelled calls continued. Returns 1 if a limit is
exceeded. Covers only older revisions: 2026-07-28 has no sessions, and its clients cancel a call by disconnecting.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from _target import Report, Target, target

from over_http import HANDSHAKE

SMALL: Final = 1_450
"""Number of empty objects in a handshake of just under 16 KiB, which the fast path answers."""

LARGE: Final = {"text": "x" * 60_000}
"""The content of a handshake that only the SDK answers."""

GROWTH_ENDED: Final = 20
"""Maximum growth in MB after sessions have ended."""

GROWTH_OPEN: Final = 180
"""Maximum growth in MB with 2,000 open sessions."""

EARLIEST: Final = 0.02
"""Minimum seconds before a call is cancelled; a notification that overtakes its request has no effect."""

LATEST: Final = 0.25
"""Maximum seconds before a call is cancelled. After 0.1 s, the response switches to SSE."""


class Client:
    """One connection."""

    def __init__(self, port: int) -> None:
        """Connect."""
        self._connection = http.client.HTTPConnection("127.0.0.1", port)

    def send(self, method: str, message: Any, session: str | None = None) -> tuple[int, Mapping[str, str], bytes]:
        """Send a message. Return the response's status, headers and body."""
        headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        if session is not None:
            headers |= {"Mcp-Session-Id": session, "MCP-Protocol-Version": HANDSHAKE}
        body = None if message is None else json.dumps(message, separators=(",", ":"))
        self._connection.request(method, "/mcp", body, headers)
        response = self._connection.getresponse()
        return response.status, response.headers, response.read()

    def initialize(self, experimental: Any) -> str | None:
        """Initialize; return the session, or `None` if the server rejects another session."""
        said = {"protocolVersion": HANDSHAKE, "capabilities": {"experimental": experimental}, "clientInfo": CLIENT}
        status, headers, _ = self.send("POST", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": said})
        return headers["mcp-session-id"] if status == http.HTTPStatus.OK else None

    def close(self) -> None:
        """Disconnect."""
        self._connection.close()


CLIENT: Final = {"name": "attack", "version": "1"}


def megabytes(process: int) -> float:
    """Return the resident memory of a process."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def end_sessions(report: Report, it: Target, count: int) -> None:
    """Initialize and end the session, repeatedly on one connection."""
    client = Client(it.port)
    before = 0.0
    for number in range(count + 100):
        if number == 100:  # memory of the first sessions is not a leak
            before = megabytes(it.process)
        session = client.initialize({str(key): {} for key in range(SMALL)})
        if session is not None:
            client.send("DELETE", None, session)
    grown = megabytes(it.process) - before
    what = f"{count} ended sessions with handshakes of 16 KiB"
    report.say(what, f"{before:.0f} MB and {grown:+.1f}", f"at most {GROWTH_ENDED}", holds=grown <= GROWTH_ENDED)
    client.close()


def open_sessions(report: Report, it: Target, count: int, name: str, experimental: Any) -> None:
    """Open sessions without ending them."""
    client = Client(it.port)
    before = megabytes(it.process)
    opened = sum(client.initialize(experimental) is not None for _ in range(count))
    grown = megabytes(it.process) - before
    what = f"{count} handshakes of {name}, {opened} open a session"
    report.say(what, f"{before:.0f} MB and {grown:+.1f}", f"at most {GROWTH_OPEN}", holds=grown <= GROWTH_OPEN)
    client.close()


async def cancel(it: Target, after: float) -> bool:
    """Cancel a call after a delay. Return whether it continued."""
    caller, canceller = Client(it.port), Client(it.port)
    session = await asyncio.to_thread(caller.initialize, {})
    call = {"name": "wait", "arguments": {"seconds": 3}}
    message = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call}
    begun = time.monotonic()
    called = asyncio.create_task(asyncio.to_thread(caller.send, "POST", message, session))
    await asyncio.sleep(after)
    notification = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
    await asyncio.to_thread(canceller.send, "POST", notification, session)
    await called
    caller.close()
    canceller.close()
    return time.monotonic() - begun > 2.5  # seconds; a call without cancellation takes three


async def cancel_calls(report: Report, it: Target, count: int) -> None:
    """Cancel calls after delays over the whole range, including none."""
    lost: list[float] = []
    for start in range(0, count, 4):
        moments = [EARLIEST + (LATEST - EARLIEST) * number / count for number in range(start, min(start + 4, count))]
        ran_on = await asyncio.gather(*(cancel(it, moment) for moment in moments))
        lost += [moment for moment, is_lost in zip(moments, ran_on, strict=True) if is_lost]
    said = f"{len(lost)} of {count} lost{''.join(f', {moment:.3f} s' for moment in lost)}"
    report.say(f"cancellations {EARLIEST} to {LATEST} s after the call", said, "none", holds=not lost)


def main() -> int:
    """Run the attacks, and report them."""
    parser = argparse.ArgumentParser(description="Open and end sessions, and cancel calls.")
    parser.add_argument("--quick", action="store_true", help="run a sample of some seconds")
    quick: bool = parser.parse_args().quick
    report = Report("sessions")
    with tempfile.TemporaryDirectory() as made, target(Path(made), "--log-level", "error") as it:
        asyncio.run(cancel_calls(report, it, 40 if quick else 200))
        end_sessions(report, it, 300 if quick else 3_000)
        small = {str(key): {} for key in range(SMALL)}
        open_sessions(report, it, 200 if quick else 1_000, "16 KiB", small)
        open_sessions(report, it, 100 if quick else 1_000, "60 KiB", LARGE)
    return report.status()


if __name__ == "__main__":
    sys.exit(main())
