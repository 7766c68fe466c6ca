"""A `dev` server: it loads the whole package at startup and serves when `dev` signals it.

    python -P server.py PARENT GATE KEY PACKAGE [WORD …]

`PARENT` is a pipe that closes when `dev` exits, which stops the server; empty on Windows. `GATE` is a socket on which
the server reports that it is ready and then waits for the signal to serve; empty to serve immediately. `KEY` is the JWK
that verifies all tokens instead of the keys of the manifest's issuer; can be empty. The other words are the arguments
of `python -m PACKAGE`. This program does not import the compiler. It is separate because generated servers have no such
options, so they never accept a key by mistake.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import socket
import sys
from typing import Any


class Key:
    """A key set that contains only the key of this `dev` run."""

    def __init__(self, jwk: dict[str, Any]) -> None:
        from jwt import PyJWK

        self._id, self._algorithm = jwk["kid"], jwk["alg"]
        self._key = PyJWK(jwk, self._algorithm)

    async def find(self, kid: str | None, algorithm: str) -> Any:
        """Return the key if it has this ID and algorithm; otherwise None."""
        return self._key if (kid, algorithm) == (self._id, self._algorithm) else None


def main() -> None:
    """Load the package, wait for the signal from `dev`, and serve."""
    parent, gate, jwk, name, *words = sys.argv[1:]
    package: Any = importlib.import_module(f"{name}.registry").PACKAGE
    running: Any = importlib.import_module("stubwright_runtime.server.main")
    if parent:
        signals: Any = importlib.import_module("stubwright_runtime.server.execution.signals")
        signals.stop_at_end_of(int(parent))
    verifier = None
    if jwk:
        tokens: Any = importlib.import_module("stubwright_runtime.policy.tokens")
        verifier = tokens.Tokens(package.manifest["auth"], Key(json.loads(jwk)), keeps_text=package.exchanges_tokens)

    def wait_for_turn() -> None:
        _load(name)
        if gate:
            _wait(int(gate))

    running.main(package, words, verifier=verifier, proceed=wait_for_turn)


def _load(name: str) -> None:
    """Import all of the package's modules, because the next save can overwrite modules with incompatible versions."""
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, f"{name}."):
        if not module.name.endswith(".__main__"):
            importlib.import_module(module.name)


def _wait(number: int) -> None:
    """Report that the server is ready, and wait for the signal to serve. Raises SystemExit if `dev` has exited."""
    with socket.socket(fileno=number) as gate:
        gate.sendall(b".")
        if not gate.recv(1):
            raise SystemExit(0)


if __name__ == "__main__":
    main()
