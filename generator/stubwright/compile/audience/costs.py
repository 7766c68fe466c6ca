"""Measures the cost of a manifest's lists for models, in tokens, and suggests the most effective cuts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from stubwright import tokens

if TYPE_CHECKING:
    from stubwright import ir

MOST_CUTS: Final = 3
"""The maximum number of suggested cuts."""

_WORDS: Final = frozenset({"description", "title", "examples", "default"})
_LARGEST: Final = 5


@dataclass(frozen=True, slots=True)
class Costs:
    """Tokens.

    Attributes:
        tools: For each tool, by name.
        toolsets: For each toolset: the sum of its tools.
        server: For all lists of the server: tools, resources, templates and prompts.
    """

    tools: Mapping[str, int]
    toolsets: Mapping[str, int]
    server: int


def measure(manifest: ir.Manifest) -> Costs:
    """Return the tokens that the lists cost."""
    tools = {tool.name: tokens.count(tool.listed) for tool in manifest.tools}
    toolsets = {name: sum(tools[each] for each in toolset["tools"]) for name, toolset in manifest.toolsets.items()}
    others = [entry.definition for entries in manifest.primitives.values() for entry in entries]
    return Costs(tools, toolsets, sum(tools.values()) + sum(map(tokens.count, (*others, *manifest.skill_resources))))


def suggest_cuts(definitions: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the cuts that would save most, each with its savings; at most `MOST_CUTS`."""
    before = [tokens.count(definition) for definition in definitions]
    savings = {
        "omit every `outputSchema`": [_without(each, "outputSchema") for each in definitions],
        "shorten descriptions of tools to their first paragraph": [_shortened(each) for each in definitions],
        "omit descriptions inside schemas": [_bare(each) for each in definitions],
    }
    ranked = {
        what: sum(before) - sum(tokens.count(definition) for definition in after) for what, after in savings.items()
    }
    if len(definitions) > 2 * _LARGEST:
        largest = sorted(zip(before, definitions, strict=True), key=lambda each: -each[0])[:_LARGEST]
        names = ", ".join(f"`{definition['name']}`" for _, definition in largest)
        ranked[f"move the largest tools to their own toolset: {names}"] = sum(cost for cost, _ in largest)
    best = sorted(ranked, key=lambda what: -ranked[what])[:MOST_CUTS]
    return [f"{what} (saves {ranked[what]:,})" for what in best if ranked[what] > 0]


def _without(definition: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in definition.items() if name != key}


def _shortened(definition: Mapping[str, Any]) -> dict[str, Any]:
    text = definition.get("description")
    return {**definition, **({"description": text.partition("\n\n")[0]} if isinstance(text, str) else {})}


def _bare(definition: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _plain(value) if key.endswith("Schema") else value for key, value in definition.items()}


def _plain(value: Any, *, names: bool = False) -> Any:
    """Return a schema without texts; below `properties` and the like, keys are names."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if not isinstance(value, dict):
        return value
    return dict(_kept(value, names=names))


def _kept(value: Mapping[str, Any], *, names: bool) -> Iterator[tuple[str, Any]]:
    for key, below in value.items():
        if names or key not in _WORDS:
            yield key, _plain(below, names=not names and key in ("properties", "$defs", "definitions"))
