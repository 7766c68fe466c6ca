"""Changes of resources, resource templates and prompts on the wire."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from stubwright.diff.changes import Change, change_words
from stubwright.diff.kinds import tools
from stubwright.diff.kinds.policies import compare_policies
from stubwright.diff.subsumption.annotations import are_same
from stubwright_runtime.mcp import vocabulary

if TYPE_CHECKING:
    from stubwright import ir
    from stubwright.diff.kinds.tools import ManifestPair

_ARGUMENT: Final = {"description": "SW501", "title": "SW502"}
"""The texts of a prompt's argument that models read, and the codes of their changes."""


def compare(pair: ManifestPair) -> Iterator[Change]:
    """Yield all changes of what a server lists besides tools."""
    for section in vocabulary.PRIMITIVES:
        old, new = (
            {primitive.key: primitive for primitive in manifest.primitives[section]}
            for manifest in (pair.old, pair.new)
        )
        for name, primitive in old.items():
            if name not in new:
                yield Change(
                    "SW550",
                    "wire",
                    "breaking",
                    name_subject(primitive),
                    f"the {primitive.kind} is gone",
                    primitive.place,
                )
        for name, primitive in new.items():
            if name not in old:
                message = f"a new {primitive.kind}"
                yield Change("SW551", "wire", "compatible", name_subject(primitive), message, None, primitive.place)
        common = [name for name in old if name in new]
        if common != [name for name in new if name in old]:
            yield Change("SW503", "wire", "cosmetic", section.name, "they are listed in another order")
        extension = [
            {entry[section.key]: entry.get("stubwright") or {} for entry in manifest.document.get(section.name) or ()}
            for manifest in (pair.old, pair.new)
        ]
        for name in new:
            if name in old:
                yield from _compare_primitive(
                    old[name], new[name], extension[0].get(name, {}), extension[1].get(name, {}), pair
                )


def name_subject(primitive: ir.Primitive) -> str:
    """Return the name of a primitive in messages."""
    return f"{primitive.kind} `{primitive.key}`"


def _compare_primitive(
    old: ir.Primitive, new: ir.Primitive, before: Mapping[str, Any], after: Mapping[str, Any], pair: ManifestPair
) -> Iterator[Change]:
    about = name_subject(new)
    for key in dict.fromkeys((*new.definition, *old.definition)):
        if key == "arguments" or are_same(old.definition.get(key), new.definition.get(key)):
            continue
        places = old.place / key, new.place / key
        if key in ("description", "title"):
            yield tools.compare_words(about, key, old.definition, new.definition, places)
        elif key == "mimeType":
            was, now = (str(primitive.definition.get(key, "absent")) for primitive in (old, new))
            message = f"the MIME type was {was}, and is {now}"
            yield Change("SW555", "wire", "breaking", about, message, *places)
        else:
            yield Change("SW502", "wire", "cosmetic", about, f"`{key}` changed", *places)
    if new.section == vocabulary.PROMPTS:
        yield from _compare_arguments(old, new)
    at = old.place / "stubwright", new.place / "stubwright"
    both = before.get("policy") or {}, after.get("policy") or {}
    yield from compare_policies(about, *both, (at[0] / "policy", at[1] / "policy"))
    yield from tools.compare_extension(about, before, after, at)
    if not are_same(before.get("complete"), after.get("complete")):
        places = at[0] / "complete", at[1] / "complete"
        yield Change("SW556", "wire", "compatible", about, "what is completed changed", *places)
    if not are_same(before.get("messages"), after.get("messages")):
        places = at[0] / "messages", at[1] / "messages"
        yield change_words(
            "SW557", about, "the messages changed", places, before.get("messages"), after.get("messages")
        )
    files = [
        [
            manifest.files.get(extension["file"])
            for manifest, extension in ((pair.old, before), (pair.new, after))
            if "file" in extension
        ]
    ]
    if not are_same(before.get("text"), after.get("text")) or (len(files[0]) == 2 and files[0][0] != files[0][1]):
        yield Change("SW557", "wire", "compatible", about, "the content changed", *at)


def _compare_arguments(old: ir.Primitive, new: ir.Primitive) -> Iterator[Change]:
    about = name_subject(new)
    before, after = ({argument.name: argument for argument in primitive.arguments or ()} for primitive in (old, new))
    places = old.place / "arguments", new.place / "arguments"
    for name, argument in after.items():
        was = before.get(name)
        if argument.required and (was is None or not was.required):
            message = f"the argument `{name}` is {'new and ' if was is None else ''}required now"
            yield Change("SW552", "wire", "breaking", about, message, *places)
        elif was is None or (was.required and not argument.required):
            message = f"the {'optional argument' if was is None else 'argument'} `{name}` is " + (
                "new" if was is None else "no longer required"
            )
            yield Change("SW554", "wire", "compatible", about, message, *places)
    sent = [{entry["name"]: entry for entry in side.definition.get("arguments") or ()} for side in (old, new)]
    for name in after:
        for key, code in _ARGUMENT.items():
            texts = [side.get(name, {}).get(key) for side in sent]
            if name in before and texts[0] != texts[1]:
                yield change_words(code, about, f"the {key} of `{name}` changed", places, *texts)
    for name in before:
        if name not in after:
            yield Change("SW553", "wire", "breaking", about, f"the argument `{name}` is gone", *places)
