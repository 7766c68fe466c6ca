"""Measures an import's `tools/list` in bytes and suggests options that reduce it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

_LARGE: Final = 50_000
"""The size in bytes above which notes suggest how to reduce it."""

_LARGEST: Final = 3
_WORTH_IT: Final = 0.02
"""The smallest saving worth suggesting, as a fraction of the total."""


@dataclass(slots=True)
class ToolSizes:
    """Measures tools; each shared definition is measured only once.

    Attributes:
        tools: The tools as sent on the wire.
    """

    tools: Sequence[Mapping[str, Any]]
    _known: dict[tuple[int, str], int] = field(default_factory=dict)

    def measure_tool(self, tool: Mapping[str, Any]) -> int:
        """Return a tool's size in bytes as sent: compact JSON in UTF-8."""
        inner = sum(self._measure_schema(tool[key], key, _measure) - 1 for key in _SCHEMAS if key in tool)
        return _measure({key: 0 if key in _SCHEMAS else value for key, value in tool.items()}) + inner

    def measure_outputs(self) -> int:
        """Return the size of all output schemas in bytes, including their keys."""
        key = "outputSchema"
        return sum(
            self._measure_schema(tool[key], key, _measure) + len(f',"{key}":') for tool in self.tools if key in tool
        )

    def measure_all(self, measure: Callable[[Any], int], key: str) -> int:
        """Return the sum of `measure` over all tools' descriptions and schemas; `key` is the cache key of `measure`."""
        total = 0
        for tool in self.tools:
            total += measure({"description": tool.get("description")})
            total += sum(self._measure_schema(tool[name], key, measure) for name in _SCHEMAS if name in tool)
        return total

    def _measure_schema(self, schema: Mapping[str, Any], key: str, measure: Callable[[Any], int]) -> int:
        shared = schema.get("$defs")
        if not isinstance(shared, dict) or not shared:
            return measure(schema)
        total = measure({name: {} if name == "$defs" else value for name, value in schema.items()})
        if measure is _measure:
            key = "size"
            total += sum(_measure(name) + 2 for name in shared) - 1
        for definition in shared.values():
            cache_key = (id(definition), key)
            if cache_key not in self._known:
                self._known[cache_key] = measure(definition)
            total += self._known[cache_key]
        return total


_SCHEMAS: Final = ("inputSchema", "outputSchema")


def report_cost(
    lists: ToolSizes, saving: Mapping[str, int], groups: Mapping[str, Iterable[str]], unlisted: int
) -> list[str]:
    """Return notes on the size of `tools/list`.

    Args:
        lists: The tools to measure.
        saving: The number of bytes that each command-line option would save.
        groups: The tool names for each tag.
        unlisted: The size in bytes of output schemas that are not sent.
    """
    sizes = {str(tool["name"]): lists.measure_tool(tool) for tool in lists.tools}
    total = sum(sizes.values())
    if not total:
        return []
    share = f"; output schemas ({unlisted:,} bytes more) are only listed with `output: strict`" if unlisted else ""
    lines = [f"`tools/list` has {total:,} bytes{share}"]
    if total < _LARGE:
        return lines
    lines.append(f"the largest tools: {_rank(sizes)}")
    by_group = {name: sum(sizes.get(tool, 0) for tool in names) for name, names in groups.items()}
    if len(by_group) > 1:
        lines.append(f"the largest tags, which `--exclude` can omit: {_rank(by_group)}")
    worthwhile = {option: bytes_ for option, bytes_ in saving.items() if bytes_ > total * _WORTH_IT}
    if worthwhile:
        lines.append(f"options that save the most: {_rank(worthwhile)}")
    return lines


def _measure(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace"))


def _rank(sizes: Mapping[str, int]) -> str:
    largest = sorted(sizes, key=lambda name: (-sizes[name], name))[:_LARGEST]
    return ", ".join(f"`{name}` {sizes[name]:,}" for name in largest) + " bytes"
