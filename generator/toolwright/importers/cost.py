"""What the list of an imported server's tools will cost those who read it: its bytes, and what would save most.

Takes the tools as `tools/list` sends them; gives notes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

_LARGE: Final = 50_000
"""Bytes of a list from which on it is told what would save some."""

_LARGEST: Final = 3
_WORTH_IT: Final = 0.02
"""The part of the list that an option saves at least, to be named."""


@dataclass(slots=True)
class Lists:
    """Measures tools; what many of them carry below `$defs` is looked at once.

    Attributes:
        tools: The tools, as they go on the wire.
    """

    tools: Sequence[Mapping[str, Any]]
    _known: dict[tuple[int, str], int] = field(default_factory=dict)

    def size(self, tool: Mapping[str, Any]) -> int:
        """The bytes of a tool as compact JSON in UTF-8, which is how it goes on the wire."""
        inner = sum(self._schema(tool[key], key, _size) - 1 for key in _SCHEMAS if key in tool)
        return _size({key: 0 if key in _SCHEMAS else value for key, value in tool.items()}) + inner

    def outputs(self) -> int:
        """The bytes that are in output schemas, with their keys."""
        key = "outputSchema"
        return sum(self._schema(tool[key], key, _size) + len(f',"{key}":') for tool in self.tools if key in tool)

    def measured(self, measure: Callable[[Any], int], key: str) -> int:
        """The sum of what `measure` gives for the tools' descriptions and schemas; `key` tells it from others."""
        found = 0
        for tool in self.tools:
            found += measure({"description": tool.get("description")})
            found += sum(self._schema(tool[name], key, measure) for name in _SCHEMAS if name in tool)
        return found

    def _schema(self, schema: Mapping[str, Any], key: str, measure: Callable[[Any], int]) -> int:
        shared = schema.get("$defs")
        if not isinstance(shared, dict) or not shared:
            return measure(schema)
        found = measure({name: {} if name == "$defs" else value for name, value in schema.items()})
        if measure is _size:
            key = "size"
            found += sum(_size(name) + 2 for name in shared) - 1
        for one in shared.values():
            known = (id(one), key)
            if known not in self._known:
                self._known[known] = measure(one)
            found += self._known[known]
        return found


_SCHEMAS: Final = ("inputSchema", "outputSchema")


def notes(lists: Lists, saving: Mapping[str, int], groups: Mapping[str, Iterable[str]]) -> list[str]:
    """What a list costs.

    Args:
        lists: The tools.
        saving: The bytes that each option of the command line would save.
        groups: The names of the tools in each group that could be left out by its name.
    """
    sizes = {str(tool["name"]): lists.size(tool) for tool in lists.tools}
    whole = sum(sizes.values())
    outputs = lists.outputs()
    if not whole:
        return []
    share = f", {round(100 * outputs / whole)} % of them in output schemas" if outputs else ""
    found = [f"`tools/list` has {whole:,} bytes{share}"]
    if whole < _LARGE:
        return found
    found.append(f"the largest tools: {_ranked(sizes)}")
    by_group = {name: sum(sizes.get(tool, 0) for tool in names) for name, names in groups.items()}
    if len(by_group) > 1:
        found.append(f"the largest tags, which `--exclude` takes: {_ranked(by_group)}")
    worth = {option: bytes_ for option, bytes_ in saving.items() if bytes_ > whole * _WORTH_IT}
    if worth:
        found.append(f"what would save most: {_ranked(worth)}")
    return found


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace"))


def _ranked(sizes: Mapping[str, int]) -> str:
    most = sorted(sizes, key=lambda name: (-sizes[name], name))[:_LARGEST]
    return ", ".join(f"`{name}` {sizes[name]:,}" for name in most) + " bytes"
