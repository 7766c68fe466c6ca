"""Changes of the server as a whole on the wire: its description, its capabilities and its authorization."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from stubwright.diagnostics import Place
from stubwright.diff.changes import Change, change_words
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
"""The texts of a server that models read."""


def compare(
    pair: ManifestPair, old: Mapping[str, Any], new: Mapping[str, Any], files: tuple[str, str]
) -> Iterator[Change]:
    """Yield all changes of the server as a whole.

    Args:
        pair: The manifests.
        old: The value of the old entry file.
        new: The value of the new one.
        files: Their paths, as places have them.
    """

    def locate(*steps: str) -> tuple[Place, Place]:
        return Place(files[0], steps), Place(files[1], steps)

    before, after = pair.old.server, pair.new.server
    for key in dict.fromkeys((*after, *before)):
        if key == "capabilities" or are_same(before.get(key), after.get(key)):
            continue
        code = "SW504" if key in ("name", "version", "instructions") else "SW502"
        if key in _WORDS:
            yield change_words(code, _ABOUT, f"`{key}` changed", locate("server", key), before.get(key), after.get(key))
        else:
            yield Change(code, "wire", "cosmetic", _ABOUT, f"`{key}` changed", *locate("server", key))
    was, now = list_capabilities(pair.old), list_capabilities(pair.new)
    for name in sorted(was - now):
        yield Change("SW505", "wire", "breaking", _ABOUT, f"the capability `{name}` is gone", *locate("server"))
    for name in sorted(now - was):
        yield Change("SW505", "wire", "compatible", _ABOUT, f"the capability `{name}` is new", *locate("server"))
    yield from _compare_authorization(old.get("auth"), new.get("auth"), locate("auth"))
    yield from compare_policies("all tools", old.get("policy") or {}, new.get("policy") or {}, locate("policy"))
    limits = pair.old.budget.get("result"), pair.new.budget.get("result")
    yield from compare_result_budgets("all tools", limits[0], limits[1], locate("budget"))
    for key in _LISTING:
        if not are_same(old.get(key), new.get(key)):
            yield Change("SW507", "wire", "compatible", _ABOUT, f"`{key}` changed", *locate(key))
    yield from _compare_storage(old.get("storage") or {}, new.get("storage") or {}, locate("storage"))
    places = [
        {name: locate("apis", name)[side] for name in value.get("apis") or {}} for side, value in enumerate((old, new))
    ]
    apis = [manifest.document.get("apis") or {} for manifest in (pair.old, pair.new)]
    yield from tools.compare_apis(apis[0], apis[1], (places[0], places[1]))
    yield from handles.compare_kinds(pair.old, pair.new)
    if not are_same(old.get("protocol"), new.get("protocol")):
        message = "the oldest supported revision changed"
        yield Change("SW507", "wire", "cosmetic", _ABOUT, message, *locate("protocol"))
    shown = [bool((value.get("audit") or {}).get("arguments")) for value in (old, new)]
    if shown[0] != shown[1]:
        message = f"records of calls {'have' if shown[1] else 'no longer have'} the values of arguments"
        yield Change("SW509", "wire", "cosmetic", _ABOUT, message, *locate("audit"))
    hints = [(value.get("client") or {}).get("hints", "trusted") for value in (old, new)]
    if hints[0] != hints[1]:
        message = f"clients treat the hints of tools as {hints[1]} now"
        yield Change("SW520", "wire", "cosmetic", "all tools", message, *locate("client"))
    if pair.old.refs != pair.new.refs:
        message = f"schemas are sent {_REFERENCES[pair.new.refs]}; they accept the same"
        yield Change("SW507", "wire", "cosmetic", _ABOUT, message, *locate("wire"))
    if pair.old.splits_types != pair.new.splits_types:
        how = "`anyOf`" if pair.new.splits_types else "lists"
        message = f"several types of a value are sent as {how}; the schemas accept the same"
        yield Change("SW507", "wire", "cosmetic", _ABOUT, message, *locate("wire"))
    omits = [manifest.document.get("nulls") == "omitted" for manifest in (pair.old, pair.new)]
    if omits[0] != omits[1]:
        message = f"`null` for an optional argument that refuses it is {'omitted' if omits[1] else 'refused'} now"
        yield Change("SW507", "wire", "compatible" if omits[1] else "breaking", _ABOUT, message, *locate("wire"))
    if pair.old.formats != pair.new.formats:
        yield from _compare_formats(get_settings(pair.old.formats), get_settings(pair.new.formats), locate)


def _compare_formats(old: Settings, new: Settings, at: Callable[..., tuple[Place, Place]]) -> Iterator[Change]:
    listed = "breaking changes are listed with the schemas"
    if old["formats"] != new["formats"]:
        stricter = new["formats"]
        message = f"`format` is {'asserted now' if stricter else 'no longer asserted'}"
        yield Change("SW508", "wire", "cosmetic", _ABOUT, message, *at("formats"), listed if stricter else None)
    if old["exact"] != new["exact"]:
        stricter = new["exact"]
        message = f"texts that no type represents exactly are {'refused' if stricter else 'accepted'} now"
        yield Change(
            "SW508", "wire", "cosmetic", _ABOUT, message, *at("python", "formats"), listed if stricter else None
        )


def _compare_storage(before: Mapping[str, Any], after: Mapping[str, Any], at: tuple[Place, Place]) -> Iterator[Change]:
    for key, default in _STORAGE.items():
        was, now = before.get(key, default), after.get(key, default)
        if parse_size(was) == parse_size(now):
            continue
        is_less = parse_size(now) < parse_size(was)
        yield Change(
            "SW520",
            "wire",
            "may break" if is_less else "compatible",
            _ABOUT,
            f"`storage.{key}` was `{was}`, and is `{now}`",
            at[0] / key,
            at[1] / key,
            "values that callers could store may be refused now" if is_less else None,
        )


def _compare_authorization(was: Any, now: Any, at: tuple[Place, Place]) -> Iterator[Change]:
    if are_same(was, now):
        return
    if not was:
        yield Change("SW506", "wire", "breaking", _ABOUT, "callers must be authorized now", *at)
    elif not now:
        yield Change("SW506", "wire", "compatible", _ABOUT, "callers no longer need authorization", *at)
    else:
        for key in dict.fromkeys((*now, *was)):
            if key == "bind" or are_same(was.get(key), now.get(key)):  # what it binds is compared in each tool
                continue
            places = at[0] / key, at[1] / key
            if key == "requiredScopes":
                yield from compare_policies(_ABOUT, {"scopes": was.get(key)}, {"scopes": now.get(key)}, at)
            else:
                why = "tokens that were accepted may be refused now"
                yield Change("SW506", "wire", "may break", _ABOUT, f"`auth.{key}` changed", *places, why)


def list_capabilities(manifest: ir.Manifest) -> frozenset[str]:
    """Return the capabilities that the server of a manifest announces."""
    listed = {vocabulary.TOOLS: manifest.tools, **manifest.primitives}
    announced: set[str] = {section.capability for section, entries in listed.items() if entries}
    if manifest.skills:
        announced.add(vocabulary.RESOURCES.capability)
    if any(primitive.completed for primitives in manifest.primitives.values() for primitive in primitives):
        announced.add("completions")
    declared = manifest.server.get("capabilities")
    enabled = {name for name, value in declared.items() if value} if isinstance(declared, dict) else set()
    return frozenset(announced | enabled)
