"""Runs Redis on a free port, and removes its data afterwards.

Each server uses an empty folder, and can be stopped and started again, with or without its data.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

PROGRAM: Final = "redis-server"
PATIENCE: Final = 20.0


class RedisServer:
    """A Redis server."""

    def __init__(self, folder: Path, *options: str) -> None:
        """Set the data folder, without starting the server."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self._folder = folder
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Its URL."""
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start it, and wait until it responds."""
        command = [PROGRAM, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self._folder), *self._options]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        end = time.monotonic() + PATIENCE
        while not self._answers():
            assert self._process.poll() is None, f"{PROGRAM} ended"
            assert time.monotonic() < end, f"{PROGRAM} does not answer"
            time.sleep(0.02)

    def stop(self, *, kill: bool = False) -> None:
        """Stop it. `kill` sends SIGKILL."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
            self._process.wait(PATIENCE)
            self._process = None

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as link:
                link.sendall(b"PING\r\n")
                return link.recv(100).startswith((b"+PONG", b"-NOAUTH"))
        except OSError:
            return False


@contextmanager
def run_redis(folder: Path, *options: str) -> Iterator[RedisServer]:
    """Run a server during a block. It does not persist data unless the options enable that."""
    if shutil.which(PROGRAM) is None:
        if os.environ.get("CI") == "true":
            raise FileNotFoundError(f"{PROGRAM} is not installed")
        pytest.skip(f"{PROGRAM} is not installed")
    server = RedisServer(folder, *(options or ("--save", "", "--appendonly", "no")))
    server.start()
    try:
        yield server
    finally:
        server.stop(kill=True)
