"""A server of `dev --scope`, which takes the tokens that this run has signed, and no others.

    python -P protected.py KEY PACKAGE [WORD …]

`KEY` is the JWK that verifies them; the rest is as for `python -m PACKAGE`. A program of its own, which imports nothing
of the compiler: a generated server has no option for this, and none can be had by mistake.
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any


class Key:
    """The only key there is."""

    def __init__(self, jwk: dict[str, Any]) -> None:
        """Take the key."""
        from jwt import PyJWK

        self._id, self._algorithm = jwk["kid"], jwk["alg"]
        self._key = PyJWK(jwk, self._algorithm)

    async def find(self, kid: str | None, algorithm: str) -> Any:
        """Return the key, where it is asked for."""
        return self._key if (kid, algorithm) == (self._id, self._algorithm) else None


def main() -> None:
    """Serve."""
    jwk, name, words = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3:]
    package: Any = importlib.import_module(f"{name}.registry").PACKAGE
    running: Any = importlib.import_module("stubwright_runtime.server.main")
    tokens: Any = importlib.import_module("stubwright_runtime.policy.tokens")
    verifier = tokens.Tokens(package.manifest["auth"], Key(jwk), keeps_text=package.exchanges_tokens)
    running.main(package, words, verifier=verifier)


if __name__ == "__main__":
    main()
