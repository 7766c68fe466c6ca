"""Measures how many tokens a manifest's lists cost models and suggests the most effective cuts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    """Token counts of a manifest's lists.

    Attributes:
        tools: The cost of each tool, keyed by name.
        toolsets: The cost of each toolset: the sum over its tools.
        server: The cost of all lists: tools, resources, templates and prompts.
    """

    tools: Mapping[str, int]
    toolsets: Mapping[str, int]
    server: int


def measure(manifest: ir.Manifest) -> Costs:
    """Count the tokens in a manifest's lists."""
    tools = {tool.name: tokens.count(tool.listed) for tool in manifest.tools}
    toolsets = {name: sum(tools[each] for each in toolset["tools"]) for name, toolset in manifest.toolsets.items()}
    others = [entry.definition for entries in manifest.primitives.values() for entry in entries]
    return Costs(tools, toolsets, sum(tools.values()) + sum(map(tokens.count, (*others, *manifest.skill_resources))))


def suggest_cuts(definitions: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return up to `MOST_CUTS` of the most effective cuts, each with its savings."""
    before = [tokens.count(definition) for definition in definitions]
    savings = {
        "omit every `outputSchema`": [
            {key: value for key, value in each.items() if key != "outputSchema"} for each in definitions
        ],
        "shorten tool descriptions to their first paragraph": [_shorten_description(each) for each in definitions],
        "omit descriptions inside schemas": [_drop_schema_texts(each) for each in definitions],
    }
    ranked = {
        cut: sum(before) - sum(tokens.count(definition) for definition in after) for cut, after in savings.items()
    }
    if len(definitions) > 2 * _LARGEST:
        largest = sorted(zip(before, definitions, strict=True), key=lambda each: -each[0])[:_LARGEST]
        names = ", ".join(f"`{definition['name']}`" for _, definition in largest)
        ranked[f"move the largest tools to their own toolset: {names}"] = sum(cost for cost, _ in largest)
    best = sorted(ranked, key=lambda cut: -ranked[cut])[:MOST_CUTS]
    return [f"{cut} (saves {ranked[cut]:,})" for cut in best if ranked[cut] > 0]


def _shorten_description(definition: Mapping[str, Any]) -> dict[str, Any]:
    text = definition.get("description")
    return {**definition, **({"description": text.partition("\n\n")[0]} if isinstance(text, str) else {})}


def _drop_schema_texts(definition: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _drop_texts(value) if key.endswith("Schema") else value for key, value in definition.items()}


def _drop_texts(value: Any, *, names: bool = False) -> Any:
    """Return a schema without titles and descriptions.

    `names` is true if the keys of `value` are property names rather than keywords.
    """
    if isinstance(value, list):
        return [_drop_texts(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _drop_texts(below, names=not names and key in ("properties", "$defs", "definitions"))
        for key, below in value.items()
        if names or key not in _WORDS
    }
