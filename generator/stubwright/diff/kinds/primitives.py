"""Compares resources, resource templates and prompts on the wire."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from stubwright.diff.changes import Change, Subject
from stubwright.diff.kinds import tools
from stubwright.diff.kinds.policies import compare_policies
from stubwright.diff.subsumption.annotations import are_same
from stubwright_runtime.mcp import vocabulary

if TYPE_CHECKING:
    from stubwright import ir
    from stubwright.diff.kinds.tools import ManifestPair

_ARGUMENT: Final = {"description": "SW501", "title": "SW502"}
"""The keys of a prompt argument that models read, with their change codes."""


def compare(pair: ManifestPair) -> Iterator[Change]:
    """Yield all changes to resources, templates and prompts."""
    for section in vocabulary.PRIMITIVES:
        old, new = (
            {primitive.key: primitive for primitive in manifest.primitives[section]}
            for manifest in (pair.old, pair.new)
        )
        for name, primitive in old.items():
            if name not in new:
                gone = f"the {primitive.kind} was removed"
                yield Subject(name_subject(primitive), primitive.place).change("SW550", "breaking", gone)
        for name, primitive in new.items():
            if name not in old:
                subject = Subject(name_subject(primitive), None, primitive.place)
                yield subject.change("SW551", "compatible", f"a new {primitive.kind}")
        common = [name for name in old if name in new]
        if common != [name for name in new if name in old]:
            yield Subject(section.name).change("SW503", "cosmetic", "their order in the list changed")
        before, after = (tools.get_extensions(manifest, section) for manifest in (pair.old, pair.new))
        for name in new:
            if name in old:
                yield from _compare_primitive(old[name], new[name], before.get(name, {}), after.get(name, {}), pair)


def name_subject(primitive: ir.Primitive) -> str:
    """Return the name of a resource, template or prompt for messages."""
    return f"{primitive.kind} `{primitive.key}`"


def _compare_primitive(
    old: ir.Primitive, new: ir.Primitive, before: Mapping[str, Any], after: Mapping[str, Any], pair: ManifestPair
) -> Iterator[Change]:
    subject = Subject(name_subject(new), old.place, new.place)
    for key in dict.fromkeys((*new.definition, *old.definition)):
        if key == "arguments" or are_same(old.definition.get(key), new.definition.get(key)):
            continue
        if key in ("description", "title"):
            yield tools.compare_words(subject, key, old.definition, new.definition)
        elif key == "mimeType":
            was, now = (str(primitive.definition.get(key, "absent")) for primitive in (old, new))
            yield subject.at(key).change("SW555", "breaking", f"the MIME type changed from {was} to {now}")
        else:
            yield subject.at(key).change("SW502", "cosmetic", f"`{key}` changed")
    if new.section == vocabulary.PROMPTS:
        yield from _compare_arguments(old, new, subject.at("arguments"))
    extension = subject.at("stubwright")
    yield from compare_policies(extension.at("policy"), before.get("policy") or {}, after.get("policy") or {})
    yield from tools.compare_extension(extension, before, after)
    if not are_same(before.get("complete"), after.get("complete")):
        yield extension.at("complete").change("SW556", "compatible", "the completions changed")
    messages = before.get("messages"), after.get("messages")
    if not are_same(*messages):
        yield extension.at("messages").change_words("SW557", "the messages changed", *messages)
    files = [
        manifest.files.get(declared["file"])
        for manifest, declared in ((pair.old, before), (pair.new, after))
        if "file" in declared
    ]
    if not are_same(before.get("text"), after.get("text")) or (len(files) == 2 and files[0] != files[1]):
        yield extension.change("SW557", "compatible", "the content changed")


def _compare_arguments(old: ir.Primitive, new: ir.Primitive, subject: Subject) -> Iterator[Change]:
    before, after = ({argument.name: argument for argument in primitive.arguments or ()} for primitive in (old, new))
    for name, argument in after.items():
        was = before.get(name)
        if argument.required and (was is None or not was.required):
            message = (
                f"the required argument `{name}` was added" if was is None else f"the argument `{name}` is now required"
            )
            yield subject.change("SW552", "breaking", message)
        elif was is None:
            yield subject.change("SW554", "compatible", f"the optional argument `{name}` was added")
        elif was.required and not argument.required:
            yield subject.change("SW554", "compatible", f"the argument `{name}` is no longer required")
    sent = [{entry["name"]: entry for entry in side.definition.get("arguments") or ()} for side in (old, new)]
    for name in after:
        for key, code in _ARGUMENT.items():
            texts = [side.get(name, {}).get(key) for side in sent]
            if name in before and texts[0] != texts[1]:
                yield subject.change_words(code, f"the {key} of `{name}` changed", *texts)
    for name in before:
        if name not in after:
            yield subject.change("SW553", "breaking", f"the argument `{name}` was removed")
