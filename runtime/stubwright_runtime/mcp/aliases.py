"""Old tool names, which are not listed but can still be called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Alias:
    """An old tool name. It is not listed, but can still be called.

    Attributes:
        name: The old name.
        tool: The tool's wire name.
        remove_after: The last server version that supports the old name. `None` if unspecified.
        arguments: The current argument names, by old name.
    """

    name: str
    tool: str
    remove_after: str | None
    arguments: Mapping[str, str]

    def rename(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        """Rename arguments to their current names. If both names were sent, the old name's value wins."""
        return {
            **{name: value for name, value in sent.items() if name not in self.arguments},
            **{self.arguments[name]: value for name, value in sent.items() if name in self.arguments},
        }

    def find_clashes(self, sent: Mapping[str, Any]) -> list[str]:
        """Return a line for each argument that was sent under both names."""
        return [
            f"`{old}` and `{new}` are the same argument; send only one"
            for old, new in self.arguments.items()
            if old != new and old in sent and new in sent and new not in self.arguments
        ]
