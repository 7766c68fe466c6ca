"""The commands, one module each.

Each module's `add` declares the command's arguments. Heavy modules are imported only when the command runs. A command
takes the parsed command line and returns the exit status.
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
"""The module of each command, relative to this package."""

GROUPS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "write": ("new", "check", "explain", "generate", "import", "refresh", "schema"),
        "run": ("dev", "call", "list", "inspect", "install", "mock", "record", "replay"),
        "contracts": ("lock", "verify", "test", "diff"),
        "publish": ("docs", "publish", "targets", "export", "wheels", "completion"),
    }
)
"""The commands in the order of `--help`."""
