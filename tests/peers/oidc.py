"""Runs oidc-provider, a certified third-party authorization server, with automatic consent.

It is a Node package, which `npx` fetches; `issuer.mjs` configures it.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

import conformance
import processes
from serving import asgi
from signing import Key

PACKAGE = "oidc-provider@9.13.3"
SECRET = "the-secret-of-the-machine"
"""The secret of the client `machine`."""

_FETCH = ("npx", "-y", "-p", "node@22", "-p", PACKAGE, "-c", "command -v node")


class NotRunError(Exception):
    """The authorization server cannot be had, or did not start."""


def free_port() -> int:
    """Return an unused port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def fetch() -> tuple[Path, Path]:
    """Fetch it, where it is not there yet: the Node to run it with, and its entry.

    Raises:
        NotRunError: It cannot be had.
    """
    if shutil.which(_FETCH[0]) is None:
        raise NotRunError("there is no npx, with which oidc-provider is fetched and run")
    done = subprocess.run(_FETCH, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotRunError(f"npx cannot fetch oidc-provider:\n{done.stderr}")
    node = Path(done.stdout.strip())
    return node, node.parents[1] / "oidc-provider" / "lib" / "index.js"


@dataclass
class Issuer:
    """The server at work: its identifier, what its tokens are for, and the keys with which it signs."""

    url: str
    resource: str
    keys: list[Key]
    process: subprocess.Popen[str]

    def sign_with(self, *keys: Key) -> None:
        """Go on with other keys; the first one signs."""
        self.keys = [*keys]
        self.tell({"keys": [key.jwk(private=True) for key in keys]})

    def tell(self, said: Any) -> None:
        """Send a line of settings, and wait until they hold. Raises NotRunError."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{json.dumps(said)}\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line == "ready\n":
                return
        raise NotRunError("oidc-provider ended")

    def token(self, *scopes: str, resource: str | None = None) -> str:
        """An access token for the client `machine`, by its credentials."""
        asked = {"grant_type": "client_credentials", "scope": " ".join(scopes), "resource": resource or self.resource}
        given = httpx2.post(f"{self.url}/token", data=asked, auth=("machine", SECRET)).raise_for_status().json()
        return str(given["access_token"])


@contextmanager
def issuing(resource: str, scopes: Sequence[str], log: Path) -> Iterator[Issuer]:
    """The authorization server for one resource, while the body runs.

    Raises:
        NotRunError: It does not start.
    """
    node, entry = fetch()
    port = free_port()
    keys = [Key("first")]
    command = [str(node), str(Path(__file__).with_name("issuer.mjs")), str(entry)]
    with (
        log.open("wb") as errors,
        processes.start_process(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, patience=900
        ) as process,
    ):
        issuer = Issuer(f"http://127.0.0.1:{port}", resource, keys, process)
        issuer.tell(
            {
                "port": port,
                "resource": resource,
                "scopes": [*scopes],
                "jwks": {"keys": [key.jwk(private=True) for key in keys]},
            }
        )
        yield issuer


@contextmanager
def processing(package: str, folder: Path, log: Path, handlers: str, *options: str) -> Iterator[str]:
    """Run a package's server over HTTP in a separate process with full logging; yield its URL."""
    command = [sys.executable, "-m", package, "--http", "127.0.0.1:0", "--handlers", handlers, "--log-level", "debug"]
    command += options
    env = {**os.environ, "PYTHONPATH": str(folder)}
    with log.open("wb") as errors:
        process = subprocess.Popen(command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stderr=errors)
    try:
        yield conformance._url(process, log)
    finally:
        process.terminate()
        process.wait(20)


@contextmanager
def standing_in(port: int, key: Key) -> Iterator[None]:
    """A small issuer, at a port that was free."""
    url = f"http://127.0.0.1:{port}"

    async def metadata(_: Any) -> JSONResponse:
        return JSONResponse({"issuer": url, "jwks_uri": f"{url}/jwks"})

    async def keys(_: Any) -> JSONResponse:
        return JSONResponse({"keys": [key.jwk()]})

    app = Starlette(routes=[Route("/.well-known/openid-configuration", metadata), Route("/jwks", keys)])
    with asgi(app, port):
        yield
