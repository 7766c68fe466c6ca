"""Python names for imported entries that would meet: each gets a `pythonName`, made from what it is called by alone.

Takes entries of a manifest; changes those that meet another, and tells which. Nothing is numbered, and the order of the
entries changes nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolwright import naming
from toolwright_runtime.mcp import vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class _Primitive:
    """A prompt, a resource or a template."""

    section: vocabulary.Section
    entry: dict[str, Any]

    @property
    def key(self) -> str:
        """What it is asked for by."""
        return str(self.entry[self.section.key])

    def named(self, name: str) -> naming.Names:
        """Its Python names, if it is called `name`."""
        return naming.primitive(self.section.noun, name)

    @property
    def stem(self) -> str:
        return self.named(self.entry["name"]).stem


def tell_apart(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Give a `pythonName` to each entry that meets another in Python; a note for each."""
    tools: Sequence[dict[str, Any]] = manifest.get("tools", ())
    taken: set[str] = set()
    renamed = dict(_tools(tools))
    for tool in tools:
        wire = tool["name"]
        if wire in renamed:
            tool["toolwright"] = {"pythonName": renamed[wire], **tool.get("toolwright", {})}
            yield f"tool `{wire}` meets another in Python; it got `pythonName: {renamed[wire]}`"
        taken.add(naming.tool(wire, renamed.get(wire)).stem)
    primitives = list(_primitives(manifest))
    meeting = Counter(primitive.stem for primitive in primitives)
    taken |= meeting.keys()
    for primitive in primitives:
        if meeting[primitive.stem] == 1 and primitive.stem not in {naming.tool(one["name"]).stem for one in tools}:
            continue
        method = _free(primitive, taken)
        taken.add(naming.pascal(method))
        primitive.entry["toolwright"] = {"pythonName": method}
        yield f"{primitive.section.noun} `{primitive.key}` meets another in Python; it got `pythonName: {method}`"


def _tools(tools: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """A method for each tool that meets another, but for one that has the very name of its method already."""
    groups: dict[str, list[str]] = defaultdict(list)
    for tool in tools:
        groups[naming.tool(tool["name"]).stem].append(tool["name"])
    for group in groups.values():
        spelled = naming.fields(group)
        for wire in group if len(group) > 1 else ():
            method = naming.method(wire)
            if wire == method:
                continue
            other = naming.method(spelled[wire])
            yield wire, (
                naming.digested_method(method, wire) if naming.pascal(other) in groups or not other.isascii() else other
            )


def _primitives(manifest: Mapping[str, Any]) -> Iterator[_Primitive]:
    for section in (vocabulary.PROMPTS, vocabulary.RESOURCES, vocabulary.TEMPLATES):
        yield from (_Primitive(section, entry) for entry in manifest.get(section.name, ()))


def _free(primitive: _Primitive, taken: set[str]) -> str:
    """A method from what a primitive is called by, else with a digest of it."""
    spelled = primitive.named(primitive.key).method
    fits = spelled.isascii() and len(spelled) <= naming.LONGEST_METHOD and naming.pascal(spelled) not in taken
    return spelled if fits else naming.digested_method(primitive.named(primitive.entry["name"]).method, primitive.key)
