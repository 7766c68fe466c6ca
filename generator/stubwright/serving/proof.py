"""The proof that a generated server can be made: it imports the package and the handlers, and serves nothing.

    python -P proof.py PACKAGE [MODULE:NAME]

A program of its own, because imported modules stay loaded: each proof needs a new interpreter. It says what is wrong in
a line on standard error and ends with 2. It imports nothing of the compiler.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any


def main() -> None:
    """Make the server. Raises SystemExit."""
    name, path = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    registry: Any = importlib.import_module(f"{name}.registry")
    loading: Any = importlib.import_module("stubwright_runtime.server.handlers.loading")
    checking: Any = importlib.import_module("stubwright_runtime.server.handlers.check")
    sdk: Any = importlib.import_module("stubwright_runtime.server.embedding.server")
    package = registry.PACKAGE
    try:
        sdk.build_server(package, loading.Handwritten(path or package.handlers, package).load())
    except (loading.StartError, checking.HandlersError) as error:
        sys.stderr.write(f"{name}: {error}\n")
        sys.exit(2)


if __name__ == "__main__":
    main()
