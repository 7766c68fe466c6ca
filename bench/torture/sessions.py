"""Handshakes that are as large as may be, in sessions that end at once or stay open, and cancellations at any moment.

    python bench/torture/sessions.py [--quick]

Prints the memory of the server before and after, and how many of the cancelled calls ran on. Gives 1 if something does
not hold. Older revisions alone: from 2026-07-28 on there are no sessions, and a call is cancelled by leaving.
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
"""Empty objects that make a handshake of just under 16 KiB, which the server answers by itself."""

LARGE: Final = {"text": "x" * 60_000}
"""What makes a handshake that only the SDK answers."""

GROWTH_ENDED: Final = 20
"""Megabytes that sessions may cost when they have ended."""

GROWTH_OPEN: Final = 180
"""Megabytes that 2,000 open sessions may cost."""

EARLIEST: Final = 0.02
"""Seconds after which a call is cancelled, at least: a notification that overtakes its request is for nothing."""

LATEST: Final = 0.25
"""Seconds after which a call is cancelled, at most. It changes hands after 0.1 s."""


class Client:
    """One connection."""

    def __init__(self, port: int) -> None:
        """Connect."""
        self._connection = http.client.HTTPConnection("127.0.0.1", port)

    def send(self, method: str, message: Any, session: str | None = None) -> tuple[int, Mapping[str, str], bytes]:
        """Send a message; return the status, the headers and the body of the answer."""
        headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        if session is not None:
            headers |= {"Mcp-Session-Id": session, "MCP-Protocol-Version": HANDSHAKE}
        body = None if message is None else json.dumps(message, separators=(",", ":"))
        self._connection.request(method, "/mcp", body, headers)
        response = self._connection.getresponse()
        return response.status, response.headers, response.read()

    def shake(self, experimental: Any) -> str | None:
        """Shake hands; return the session, or `None` if the server refuses one more."""
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
    """Shake hands and end the session, again and again on one connection."""
    client = Client(it.port)
    before = 0.0
    for number in range(count + 100):
        if number == 100:  # what the first ones load is no leak
            before = megabytes(it.process)
        session = client.shake({str(key): {} for key in range(SMALL)})
        if session is not None:
            client.send("DELETE", None, session)
    grown = megabytes(it.process) - before
    what = f"{count} ended sessions with handshakes of 16 KiB"
    report.say(what, f"{before:.0f} MB and {grown:+.1f}", f"at most {GROWTH_ENDED}", holds=grown <= GROWTH_ENDED)
    client.close()


def open_sessions(report: Report, it: Target, count: int, name: str, experimental: Any) -> None:
    """Leave sessions open."""
    client = Client(it.port)
    before = megabytes(it.process)
    opened = sum(client.shake(experimental) is not None for _ in range(count))
    grown = megabytes(it.process) - before
    what = f"{count} handshakes of {name}, of which {opened} open a session"
    report.say(what, f"{before:.0f} MB and {grown:+.1f}", f"at most {GROWTH_OPEN}", holds=grown <= GROWTH_OPEN)
    client.close()


async def cancel(it: Target, after: float) -> bool:
    """Cancel a call after so many seconds; return whether it ran on."""
    caller, canceller = Client(it.port), Client(it.port)
    session = await asyncio.to_thread(caller.shake, {})
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
    return time.monotonic() - begun > 2.5  # seconds; a call that is not cancelled takes three


async def cancel_calls(report: Report, it: Target, count: int) -> None:
    """Cancel calls at moments over the whole range, some at once."""
    lost: list[float] = []
    for start in range(0, count, 4):
        moments = [EARLIEST + (LATEST - EARLIEST) * number / count for number in range(start, min(start + 4, count))]
        ran_on = await asyncio.gather(*(cancel(it, moment) for moment in moments))
        lost += [moment for moment, is_lost in zip(moments, ran_on, strict=True) if is_lost]
    said = f"{len(lost)} of {count} lost{''.join(f', {moment:.3f} s' for moment in lost)}"
    report.say(f"cancellations {EARLIEST} to {LATEST} s after the call", said, "none", holds=not lost)


def main() -> int:
    """Attack, and report."""
    parser = argparse.ArgumentParser(description="Open and end sessions, and cancel calls.")
    parser.add_argument("--quick", action="store_true", help="take a sample of some seconds")
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
