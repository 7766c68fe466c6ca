"""The verbs of the command line, one module each.

Each module has `add`, which declares the arguments of its verb, and imports heavy modules only when the verb runs. A
verb takes the parsed command line and returns the exit status.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

VERBS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "new": "new",
        "check": "check",
        "generate": "generate",
        "dev": "development.dev",
        "call": "client.call",
        "list": "client.list_",
        "inspect": "client.inspect_",
        "install": "install",
        "diff": "diff",
        "lock": "contracts.lock",
        "verify": "contracts.verify",
        "test": "contracts.testing",
        "explain": "explain",
        "targets": "targets",
        "export": "export",
        "import": "importing.import_",
        "refresh": "importing.refresh",
        "mock": "mock",
        "record": "recording.record",
        "replay": "recording.replay",
        "docs": "docs",
        "publish": "publish",
        "schema": "schema",
        "wheels": "wheels",
        "completion": "completion",
    }
)
"""The module of each verb, relative to this package."""

GROUPS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "write": ("new", "check", "explain", "generate", "import", "refresh", "schema"),
        "run": ("dev", "call", "list", "inspect", "install", "mock", "record", "replay"),
        "contracts": ("lock", "verify", "test", "diff"),
        "publish": ("docs", "publish", "targets", "export", "wheels", "completion"),
    }
)
"""The verbs in the order in which `--help` lists them."""
