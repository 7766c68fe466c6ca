"""Resolves collisions of Python names between imported entries with a `pythonName`.

Names depend only on the entries' keys, not on their order.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stubwright import naming
from stubwright_runtime.mcp import vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class _Primitive:
    """A prompt, a resource or a template."""

    section: vocabulary.Section
    entry: dict[str, Any]

    @property
    def key(self) -> str:
        return str(self.entry[self.section.key])

    def make_names(self, name: str) -> naming.Names:
        return naming.name_primitive(self.section.noun, name)

    @property
    def stem(self) -> str:
        return self.make_names(self.entry["name"]).stem


def resolve(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Add a `pythonName` to entries with colliding Python names, and yield a note for each."""
    tools: Sequence[dict[str, Any]] = manifest.get("tools", ())
    taken: set[str] = set()
    renamed = dict(_rename_tools(tools))
    for tool in tools:
        wire = tool["name"]
        if wire in renamed:
            tool["stubwright"] = {"pythonName": renamed[wire], **tool.get("stubwright", {})}
            yield f"tool `{wire}` has the same Python name as another entry; `pythonName: {renamed[wire]}` was added"
        taken.add(naming.name_tool(wire, renamed.get(wire)).stem)
    primitives = list(_list_primitives(manifest))
    counts = Counter(primitive.stem for primitive in primitives)
    taken |= counts.keys()
    for primitive in primitives:
        if counts[primitive.stem] == 1 and primitive.stem not in {
            naming.name_tool(other["name"]).stem for other in tools
        }:
            continue
        method = _find_method(primitive, taken)
        taken.add(naming.to_pascal(method))
        primitive.entry["stubwright"] = {"pythonName": method}
        yield (
            f"{primitive.section.noun} `{primitive.key}` has the same Python name as another entry; `pythonName:"
            f" {method}` was added"
        )


def _rename_tools(tools: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield a new method name for each colliding tool, unless its wire name is already the method name."""
    groups: dict[str, list[str]] = defaultdict(list)
    for tool in tools:
        groups[naming.name_tool(tool["name"]).stem].append(tool["name"])
    for group in groups.values():
        spelled = naming.name_fields(group)
        for wire in group if len(group) > 1 else ():
            method = naming.name_method(wire)
            if wire == method:
                continue
            other = naming.name_method(spelled[wire])
            yield (
                wire,
                (
                    naming.name_digested_method(method, wire)
                    if naming.to_pascal(other) in groups or not other.isascii()
                    else other
                ),
            )


def _list_primitives(manifest: Mapping[str, Any]) -> Iterator[_Primitive]:
    for section in (vocabulary.PROMPTS, vocabulary.RESOURCES, vocabulary.TEMPLATES):
        yield from (_Primitive(section, entry) for entry in manifest.get(section.name, ()))


def _find_method(primitive: _Primitive, taken: set[str]) -> str:
    """Derive an unused method name from a primitive's key, with a digest if necessary."""
    spelled = primitive.make_names(primitive.key).method
    if spelled.isascii() and len(spelled) <= naming.LONGEST_METHOD and naming.to_pascal(spelled) not in taken:
        return spelled
    method = primitive.make_names(primitive.entry["name"]).method
    digested = naming.name_digested_method(method, primitive.key)
    if naming.to_pascal(digested) not in taken:
        return digested
    return naming.name_digested_method(method, f"{primitive.section.name} {primitive.key}")
