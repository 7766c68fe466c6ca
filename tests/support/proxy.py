"""Runs HAProxy with the configuration of `examples/deploy/` on a free port, in front of local servers.

CI does not install HAProxy, so tests that need it are skipped there.
"""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from processes import start_process

PROGRAM: Final = "haproxy"
PATIENCE: Final = 20.0


def configuration(text: str, port: int, servers: Sequence[int]) -> str:
    """Return the configuration with a local port and local servers instead of containers."""
    text, number = re.subn(r"^( *bind) :8000$", rf"\1 127.0.0.1:{port}", text, flags=re.MULTILINE)
    assert number == 1
    lines = "\n".join(f"    server server-{one} 127.0.0.1:{one}" for one in servers)
    text, number = re.subn(
        r"^ *server-template \S+ \d+ server:8000 resolvers dns init-addr none$", lines, text, flags=re.MULTILINE
    )
    assert number == 1
    return text


@contextmanager
def run_proxy(file: Path, servers: Sequence[int], folder: Path) -> Iterator[str]:
    """Run a proxy in front of these servers during a block. Yield its URL."""
    if shutil.which(PROGRAM) is None:
        pytest.skip(f"{PROGRAM} is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    made = folder / "haproxy.cfg"
    made.write_text(configuration(file.read_text("utf-8"), port, servers))
    with start_process([PROGRAM, "-db", "-f", str(made)], stdout=subprocess.DEVNULL) as process:
        end = time.monotonic() + PATIENCE
        while True:
            assert process.poll() is None, f"{PROGRAM} ended"
            assert time.monotonic() < end, f"{PROGRAM} does not answer"
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.02)
        yield f"http://127.0.0.1:{port}/mcp"
