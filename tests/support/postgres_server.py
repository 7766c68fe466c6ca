"""A real PostgreSQL server for tests, on a free port. Its data is deleted when it stops."""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

PATIENCE: Final = 60.0
_PROGRAMS: Final = ("initdb", "postgres", "pg_isready")


@contextmanager
def run_postgres() -> Iterator[Mapping[str, str]]:
    """Run a server during a block. Yield libpq's environment variables with its address."""
    programs = [_find(name) for name in _PROGRAMS]
    if None in programs:
        pytest.skip(f"PostgreSQL is not installed ({', '.join(_PROGRAMS)})")
    initdb, postgres, is_ready = map(str, programs)
    # PostgreSQL does not run as root, and pytest's folders are closed to other users.
    user = "postgres" if os.getuid() == 0 else getpass.getuser()
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))
    if os.getuid() == 0:
        shutil.chown(folder, user)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    data = str(folder / "data")
    create = [initdb, "--pgdata", data, "--username", "postgres", "--auth", "trust", "--no-sync"]
    serve = [postgres, "-D", data, "-p", port, "-c", "listen_addresses=127.0.0.1", "-k", str(folder), "-F"]
    try:
        subprocess.run(create, check=True, capture_output=True, cwd=folder, user=user)
        process = subprocess.Popen(serve, stderr=subprocess.DEVNULL, cwd=folder, user=user)
        try:
            end = time.monotonic() + PATIENCE
            while subprocess.run([is_ready, "-q", "-h", "127.0.0.1", "-p", port], check=False).returncode:
                assert process.poll() is None, "PostgreSQL ended"
                assert time.monotonic() < end, "PostgreSQL does not answer"
                time.sleep(0.1)
            yield {"PGHOST": "127.0.0.1", "PGPORT": port, "PGUSER": "postgres", "PGDATABASE": "postgres"}
        finally:
            process.send_signal(signal.SIGINT)  # closes its connections
            process.wait(PATIENCE)
    finally:
        shutil.rmtree(folder)


def _find(name: str) -> str | None:
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)  # Debian's folder
    return shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), *map(str, folders)]))
