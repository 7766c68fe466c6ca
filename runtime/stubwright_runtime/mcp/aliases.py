"""Old names of tools, which are not listed, but can be called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Alias:
    """An old name of a tool. It is not listed, but can still be called.

    Attributes:
        name: The old name.
        tool: The wire name of the tool.
        remove_after: The last version of the server that supports it; `None` if unspecified.
        arguments: The old names of arguments, with the current ones.
    """

    name: str
    tool: str
    remove_after: str | None
    arguments: Mapping[str, str]

    def rename(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments with their current names; if both names were sent, the value of the old one wins."""
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
