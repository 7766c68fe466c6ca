"""Finds the JSON Schemas in a manifest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from stubwright_runtime.mcp import vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stubwright.diagnostics import Pointer
    from stubwright.ir import Json

Role: TypeAlias = Literal["inputSchema", "outputSchema", "schemas", "ask", "complete", "state"]
"""A schema's role: arguments, results, shared schemas, answers, completions, or handle states."""


def find_schemas(value: Json) -> Iterator[tuple[Role, Pointer, Json]]:
    """Yield the schemas of a manifest, a fragment or a saved `tools/list` result, section by section."""
    for pointer, tool in list_items(value, ("tools",)):
        for role in vocabulary.SCHEMAS:
            if isinstance(tool, dict) and role in tool:
                yield role, (*pointer, role), tool[role]
        yield from _list_questions(tool, pointer, "stubwright")
    for pointer, schema in list_items(value, ("schemas",)):
        yield "schemas", pointer, schema
    for pointer, annotation in list_items(value, ("overlay", "tools")):
        yield from _list_questions(annotation, pointer)
    for section in (vocabulary.TEMPLATES, vocabulary.PROMPTS):
        for pointer, entry in list_items(value, (section.name,)):
            yield from _list_questions(entry, pointer, "stubwright")
            for below, offer in list_items(entry, ("stubwright", "complete")):
                if isinstance(offer, dict):
                    yield "complete", (*pointer, *below), offer
    for pointer, handle in list_items(value, ("handles",)):
        if isinstance(handle, dict) and "state" in handle:
            yield "state", (*pointer, "state"), handle["state"]


def _list_questions(value: Json, pointer: Pointer, *steps: str) -> Iterator[tuple[Role, Pointer, Json]]:
    for below, question in list_items(value, (*steps, "ask")):
        if isinstance(question, dict) and "schema" in question:
            yield "ask", (*pointer, *below, "schema"), question["schema"]


def list_items(value: Json, steps: tuple[str, ...]) -> Iterator[tuple[Pointer, Json]]:
    """Yield the entries of the mapping or list at `steps`. Yield nothing for other values."""
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    if isinstance(value, dict):
        for name, child in value.items():
            yield (*steps, name), child
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield (*steps, index), child
