"""Old names of tools, which no list has, and calls by them."""

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
        remove_after: The last version of the server that answers to it; `None` if the manifest does not set one.
        arguments: The old names of arguments, with the current ones.
    """

    name: str
    tool: str
    remove_after: str | None
    arguments: Mapping[str, str]

    def rename(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments with the names that the tool has for them.

        An argument that was sent under both names keeps the value that came under the old one; `find_clashes` lists it.
        """
        return {
            **{name: value for name, value in sent.items() if name not in self.arguments},
            **{self.arguments[name]: value for name, value in sent.items() if name in self.arguments},
        }

    def find_clashes(self, sent: Mapping[str, Any]) -> list[str]:
        """Return a line for each argument that was sent under its old name and under its new one."""
        return [
            f"`{old}` and `{new}` are the same argument; send only one"
            for old, new in self.arguments.items()
            if old != new and old in sent and new in sent and new not in self.arguments
        ]
