"""Compares the server's description, capabilities, authorization and other settings on the wire."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from stubwright.diagnostics import Place
from stubwright.diff.changes import Change, Subject
from stubwright.diff.kinds import handles, tools
from stubwright.diff.kinds.policies import compare_policies, compare_result_budgets
from stubwright.diff.subsumption.annotations import are_same
from stubwright.jsonschema.formats import Settings, get_settings
from stubwright_runtime.mcp import vocabulary
from stubwright_runtime.state.budget import ALL, EACH
from stubwright_runtime.values.units import parse_size

if TYPE_CHECKING:
    from stubwright import ir
    from stubwright.diff.kinds.tools import ManifestPair

_LISTING: Final = ("cache", "pageSize")
_STORAGE: Final = {"maxBytesPerPrincipal": EACH, "maxBytes": ALL}
_ABOUT: Final = "server"
_REFERENCES: Final[Mapping[ir.Refs, str]] = {
    "bundled": "with references to `$defs`",
    "inlined": "without references",
    "auto": "without references if that costs little",
}
_WORDS: Final = frozenset({"title", "description", "instructions"})
"""A server's keys that models read."""


def compare(
    pair: ManifestPair, old: Mapping[str, Any], new: Mapping[str, Any], files: tuple[str, str]
) -> Iterator[Change]:
    """Yield all changes to the server.

    Args:
        pair: The lowered manifests.
        old: The old entry file's contents.
        new: The new entry file's contents.
        files: The old and new entry file's paths, as in source locations.
    """

    subject = Subject(_ABOUT, Place(files[0]), Place(files[1]))
    all_tools = replace(subject, name="all tools")
    before, after = pair.old.server, pair.new.server
    for key in dict.fromkeys((*after, *before)):
        if key == "capabilities" or are_same(before.get(key), after.get(key)):
            continue
        part = subject.at("server", key)
        code = "SW504" if key in ("name", "version", "instructions") else "SW502"
        if key in _WORDS:
            yield part.change_words(code, f"`{key}` changed", before.get(key), after.get(key))
        else:
            yield part.change(code, "cosmetic", f"`{key}` changed")
    was, now = list_capabilities(pair.old), list_capabilities(pair.new)
    for name in sorted(was - now):
        yield subject.at("server").change("SW505", "breaking", f"the capability `{name}` was removed")
    for name in sorted(now - was):
        yield subject.at("server").change("SW505", "compatible", f"the capability `{name}` was added")
    yield from _compare_authorization(subject.at("auth"), old.get("auth"), new.get("auth"))
    yield from compare_policies(all_tools.at("policy"), old.get("policy") or {}, new.get("policy") or {})
    limits = pair.old.budget.get("result"), pair.new.budget.get("result")
    yield from compare_result_budgets(all_tools.at("budget"), *limits)
    for key in _LISTING:
        if not are_same(old.get(key), new.get(key)):
            yield subject.at(key).change("SW507", "compatible", f"`{key}` changed")
    yield from _compare_storage(subject.at("storage"), old.get("storage") or {}, new.get("storage") or {})
    yield from tools.compare_apis(subject, old.get("apis") or {}, new.get("apis") or {}, pair)
    yield from handles.compare_kinds(pair.old, pair.new)
    if not are_same(old.get("protocol"), new.get("protocol")):
        yield subject.at("protocol").change("SW507", "cosmetic", "the oldest supported revision changed")
    shown = [bool((value.get("audit") or {}).get("arguments")) for value in (old, new)]
    if shown[0] != shown[1]:
        message = f"audit records {'now' if shown[1] else 'no longer'} contain argument values"
        yield subject.at("audit").change("SW509", "cosmetic", message)
    hints = [(value.get("client") or {}).get("hints", "trusted") for value in (old, new)]
    if hints[0] != hints[1]:
        message = f"clients now treat tool hints as {hints[1]}"
        yield all_tools.at("client").change("SW520", "cosmetic", message)
    wire = subject.at("wire")
    if pair.old.refs != pair.new.refs:
        message = f"schemas are sent {_REFERENCES[pair.new.refs]}; they accept the same values"
        yield wire.change("SW507", "cosmetic", message)
    if pair.old.splits_types != pair.new.splits_types:
        how = "`anyOf`" if pair.new.splits_types else "lists"
        message = f"a choice of types is sent as {how}; the schemas accept the same values"
        yield wire.change("SW507", "cosmetic", message)
    omits = [manifest.document.get("nulls") == "omitted" for manifest in (pair.old, pair.new)]
    if omits[0] != omits[1]:
        message = f"`null` for an optional argument that forbids it is now {'omitted' if omits[1] else 'rejected'}"
        yield wire.change("SW507", "compatible" if omits[1] else "breaking", message)
    yield from _compare_formats(subject, get_settings(pair.old.formats), get_settings(pair.new.formats))


def _compare_formats(subject: Subject, old: Settings, new: Settings) -> Iterator[Change]:
    listed = "breaking changes are listed with the schemas"
    if old["formats"] != new["formats"]:
        message = f"`format` is {'now asserted' if new['formats'] else 'no longer asserted'}"
        yield subject.at("formats").change("SW508", "cosmetic", message, listed if new["formats"] else None)
    if old["exact"] != new["exact"]:
        verb = "rejected" if new["exact"] else "accepted"
        message = f"strings that the Python type of their `format` cannot represent exactly are now {verb}"
        python = subject.at("python", "formats")
        yield python.change("SW508", "cosmetic", message, listed if new["exact"] else None)


def _compare_storage(subject: Subject, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    for key, default in _STORAGE.items():
        was, now = before.get(key, default), after.get(key, default)
        if parse_size(was) != parse_size(now):
            is_less = parse_size(now) < parse_size(was)
            message = f"`storage.{key}` changed from `{was}` to `{now}`"
            why = "values that callers could store may now be rejected" if is_less else None
            yield subject.at(key).change("SW520", "may break" if is_less else "compatible", message, why)


def _compare_authorization(subject: Subject, was: Any, now: Any) -> Iterator[Change]:
    if are_same(was, now):
        return
    if not was:
        yield subject.change("SW506", "breaking", "callers must now be authorized")
    elif not now:
        yield subject.change("SW506", "compatible", "callers no longer need authorization")
    else:
        for key in dict.fromkeys((*now, *was)):
            if key == "bind" or are_same(was.get(key), now.get(key)):  # bindings are compared in each tool
                continue
            if key == "requiredScopes":
                yield from compare_policies(subject, {"scopes": was.get(key)}, {"scopes": now.get(key)})
            else:
                why = "previously accepted tokens may now be rejected"
                yield subject.at(key).change("SW506", "may break", f"`auth.{key}` changed", why)


def list_capabilities(manifest: ir.Manifest) -> frozenset[str]:
    """Return the capabilities that a manifest's server declares."""
    listed = {vocabulary.TOOLS: manifest.tools, **manifest.primitives}
    announced: set[str] = {section.capability for section, entries in listed.items() if entries}
    if manifest.skills:
        announced.add(vocabulary.RESOURCES.capability)
    if any(primitive.completed for primitives in manifest.primitives.values() for primitive in primitives):
        announced.add("completions")
    declared = manifest.server.get("capabilities")
    enabled = {name for name, value in declared.items() if value} if isinstance(declared, dict) else set()
    return frozenset(announced | enabled)
