"""Changes of tools on the wire: their list, their descriptions and their schemas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from stubwright.codegen.pages.renames import match_renamed
from stubwright.diagnostics import Place
from stubwright.diff.changes import Change, Impact, change_words
from stubwright.diff.kinds import aliases, handles
from stubwright.diff.kinds.policies import compare_policies, compare_result_budgets
from stubwright.diff.kinds.schemas import SchemaComparison
from stubwright.diff.subsumption.annotations import are_same
from stubwright_runtime.mcp import vocabulary

if TYPE_CHECKING:
    from stubwright import ir
    from stubwright.diff.changes import Side

_CAUTIOUS: Final[Mapping[str, bool]] = {hint.name: hint.default for hint in vocabulary.HINTS}
_TASKS: Final[Mapping[str, Any]] = {"ttl": "1h", "pollInterval": "1s", "lease": "10s", "most": 100}
"""The defaults of the manifest's `task`."""

_SUPPORT: Final[Mapping[tuple[str, str], tuple[Impact, str | None]]] = {
    ("forbidden", "optional"): ("compatible", None),
    ("required", "optional"): ("compatible", None),
    ("forbidden", "required"): ("breaking", "clients that do not know tasks can no longer call it"),
    ("optional", "required"): ("breaking", "clients that do not know tasks can no longer call it"),
    ("optional", "forbidden"): ("breaking", "clients that start it as a task are refused"),
    ("required", "forbidden"): ("breaking", "clients that start it as a task are refused"),
}


@dataclass(frozen=True)
class ManifestPair:
    """The old and the new manifest."""

    old: ir.Manifest
    new: ir.Manifest

    def find_shared(self) -> dict[str, tuple[Place | None, Place | None]]:
        """Return the place of each shared schema, in the old and in the new manifest."""
        old, new = (
            {schema.name: schema.schema.place for schema in manifest.shared} for manifest in (self.old, self.new)
        )
        return {name: (old.get(name), new.get(name)) for name in {**old, **new}}

    def match_renamed(self) -> dict[str, str]:
        """Map old names to new ones: removed tools of which exactly one new tool differs in its name alone.

        Those whose names are aliases now are not among them.
        """
        old, new = ({tool.name: tool.definition for tool in manifest.tools} for manifest in (self.old, self.new))
        for succession in self.find_successions():
            if succession.new.name not in old:
                new.pop(succession.new.name, None)
            old.pop(succession.old.name)
        return match_renamed(old, new)

    def find_successions(self) -> list[aliases.Succession]:
        """Return the removed tools whose names are aliases now."""
        return aliases.find_successions(self.old, self.new)

    def list_both(self) -> list[tuple[ir.Tool, ir.Tool]]:
        """Return the tools that both have, in the new manifest's order, renamed ones too; then those by aliases."""
        old = {tool.name: tool for tool in self.old.tools}
        names = {new: was for was, new in self.match_renamed().items()}
        pairs = [(old[was], tool) for tool in self.new.tools for was in [names.get(tool.name, tool.name)] if was in old]
        return pairs + [(succession.as_called(), succession.new) for succession in self.find_successions()]


def compare(pair: ManifestPair) -> Iterator[Change]:
    """Yield all changes of tools."""
    renamed = pair.match_renamed()
    succeeded = {succession.old.name: succession for succession in pair.find_successions()}
    old_names, new_names = ([tool.name for tool in manifest.tools] for manifest in (pair.old, pair.new))
    for tool in pair.old.tools:
        if tool.name in renamed:
            message = f"it is called `{renamed[tool.name]}` now"
            new = next(other for other in pair.new.tools if other.name == renamed[tool.name])
            mark = f"stubwright: {{aliases: [{{name: {tool.name}}}]}}"
            why = f"to answer to both names, give the new one `{mark}`"
            yield _change_tool(tool, "SW512", "breaking", message, tool.place / "name", new.place / "name", why)
        elif tool.name in succeeded:
            yield succeeded[tool.name].change()
        elif tool.name not in new_names:
            yield _change_tool(
                tool, "SW510", "breaking", "the tool is gone", tool.place, None, _suggest_replacement(tool)
            )
    successors = {*renamed.values(), *(succession.new.name for succession in succeeded.values())}
    for tool in pair.new.tools:
        if tool.name not in old_names and tool.name not in successors:
            yield _change_tool(tool, "SW511", "compatible", "a new tool", None, tool.place)
    yield from aliases.compare(pair.old, pair.new)
    common = [name for name in old_names if name in new_names]
    if common != [name for name in new_names if name in old_names]:
        yield Change("SW503", "wire", "cosmetic", "tools", "they are listed in another order")
    shared = pair.find_shared()
    extension = [_get_extensions(manifest, "tools", "name") for manifest in (pair.old, pair.new)]
    for old_tool, new_tool in pair.list_both():
        yield from _compare_tool(old_tool, new_tool, pair, shared)
        yield from _compare_served(
            old_tool, new_tool, extension[0].get(old_tool.name, {}), extension[1].get(new_tool.name, {}), pair
        )


def describe_subject(tool: ir.Tool) -> str:
    """Return the name of a tool in messages."""
    return f"tool `{tool.name}`"


def _compare_tool(
    old: ir.Tool, new: ir.Tool, pair: ManifestPair, shared: Mapping[str, tuple[Place | None, Place | None]]
) -> Iterator[Change]:
    formats = pair.old.formats, pair.new.formats
    before, after = old.definition, new.definition
    for key in dict.fromkeys((*after, *before)):
        if key in ("name", *vocabulary.SCHEMAS) or are_same(before.get(key), after.get(key)):
            continue
        places = old.place / key, new.place / key
        if key in ("description", "title"):
            yield compare_words(describe_subject(new), key, before, after, places)
        elif key == "annotations":
            yield from _compare_hints(old, new)
        elif key == "execution":
            yield from _compare_task_support(old, new)
        else:
            yield _change_tool(new, "SW502", "cosmetic", f"`{key}` changed", *places)
    yield from _compare_headers(old, new)
    yield from SchemaComparison(describe_subject(new), "input", old.sent, new.sent, *formats, shared).compare()
    if old.output is not None and new.output is not None:
        yield from SchemaComparison(describe_subject(new), "output", old.output, new.output, *formats, shared).compare()
    elif old.output is not None:
        why = "results no longer have `structuredContent`"
        yield _change_tool(new, "SW517", "breaking", "the `outputSchema` is gone", old.output.place, new.place, why)
    elif new.output is not None:
        yield _change_tool(new, "SW518", "compatible", "an `outputSchema` is new", old.place, new.output.place)


def compare_words(
    about: str, key: str, before: Mapping[str, Any], after: Mapping[str, Any], places: tuple[Place, Place]
) -> Change:
    """Return the change of a `description`, or of a title."""
    code, message = ("SW501", "the description changed") if key == "description" else ("SW502", f"`{key}` changed")
    return change_words(code, about, message, places, before.get(key), after.get(key))


def _compare_hints(old: ir.Tool, new: ir.Tool) -> Iterator[Change]:
    for key in dict.fromkeys((*new.annotations, *old.annotations)):
        before, after = old.annotations.get(key), new.annotations.get(key)
        if are_same(before, after):
            continue
        places = old.place / "annotations" / key, new.place / "annotations" / key
        if key == "title":
            message = "`annotations.title` changed"
            yield change_words("SW502", describe_subject(new), message, places, before, after)
            continue
        if key not in _CAUTIOUS:
            yield _change_tool(new, "SW502", "cosmetic", f"`annotations.{key}` changed", *places)
            continue
        cautious = _CAUTIOUS[key]
        was, now = (cautious if value is None else value for value in (before, after))
        if was == now:
            yield _change_tool(new, "SW513", "cosmetic", f"`{key}` is written differently, but means the same", *places)
            continue
        words = f"`{key}` was {str(was).lower()}, and is {str(now).lower()}"
        if now == cautious:
            why = "clients that ran the tool without asking, or retried it, may have to ask now"
            yield _change_tool(new, "SW513", "may break", words, *places, why)
        else:
            yield _change_tool(new, "SW513", "compatible", words, *places)


def _compare_task_support(old: ir.Tool, new: ir.Tool) -> Iterator[Change]:
    was, now = ((tool.definition.get("execution") or {}).get("taskSupport", "forbidden") for tool in (old, new))
    places = old.place / "execution", new.place / "execution"
    if was == now:
        yield _change_tool(new, "SW502", "cosmetic", "`execution` changed", *places)
        return
    impact, why = _SUPPORT.get((was, now), ("may break", None))
    yield _change_tool(new, "SW514", impact, f"`taskSupport` was {was}, and is {now}", *places, why)


def _compare_headers(old: ir.Tool, new: ir.Tool) -> Iterator[Change]:
    before, after = (tool.sent.wire.get("properties") or {} for tool in (old, new))
    for name in dict.fromkeys((*after, *before)):
        was, now = (
            property_.get("x-mcp-header") if isinstance(property_, dict) else None
            for property_ in (before.get(name), after.get(name))
        )
        if was != now:
            old_place, new_place = (
                Place(tool.input.place.file, (*tool.input.place.pointer, "properties", name)) for tool in (old, new)
            )
            why = (
                "clients mirror arguments by the list that they have, and a server of 2026-07-28 compares the header to"
                " the argument"
            )
            message = f"argument `{name}`: the header was {_quote(was)}, and is {_quote(now)}"
            yield _change_tool(new, "SW516", "may break", message, old_place, new_place, why)


def _compare_served(
    old: ir.Tool, new: ir.Tool, before: Mapping[str, Any], after: Mapping[str, Any], pair: ManifestPair
) -> Iterator[Change]:
    """Yield changes of what stands under a tool's `stubwright` key."""
    at = old.place / "stubwright", new.place / "stubwright"
    own_policies = before.get("policy") or {}, after.get("policy") or {}
    all_tools = [manifest.document.get("policy") or {} for manifest in (pair.old, pair.new)]
    policy = [
        {
            key: own_policy.get(key, default_policy.get(key)) for key in {**own_policies[1], **own_policies[0]}
        }  # a key that is gone leaves the default
        for own_policy, default_policy in zip(own_policies, all_tools, strict=True)
    ]
    yield from compare_policies(describe_subject(new), policy[0], policy[1], (at[0] / "policy", at[1] / "policy"))
    yield from _compare_budgets(old, new, before, after, pair)
    yield from _compare_bindings(old, new, before.get("bind") or {}, after.get("bind") or {}, at)
    yield from _compare_task_limits(new, before.get("task") or {}, after.get("task") or {}, at)
    yield from compare_extension(describe_subject(new), before, after, at)
    places = old.place, new.place
    yield from handles.compare_ids(
        describe_subject(new), before.get("handles") or {}, after.get("handles") or {}, places
    )
    if not are_same(before.get("http"), after.get("http")):
        places = at[0] / "http", at[1] / "http"
        yield _change_tool(new, "SW522", "may break", "the call behind the tool changed", *places)


def _compare_task_limits(
    new: ir.Tool, before: Mapping[str, Any], after: Mapping[str, Any], at: tuple[Place, Place]
) -> Iterator[Change]:
    """Yield changes of how long tasks are retained, and of how many there may be."""
    for key, default in _TASKS.items():
        was, now = before.get(key, default), after.get(key, default)
        if was != now:
            impact: Impact = "cosmetic" if key in ("pollInterval", "lease") else "may break"
            places = at[0] / "task" / key, at[1] / "task" / key
            yield _change_tool(new, "SW520", impact, f"`task.{key}` was {_quote(was)}, and is {_quote(now)}", *places)


def _compare_budgets(
    old: ir.Tool, new: ir.Tool, before: Mapping[str, Any], after: Mapping[str, Any], pair: ManifestPair
) -> Iterator[Change]:
    """Yield the change of a tool's own budget; where that came or went, the other side has the default of all."""
    own_budgets = [(extension.get("budget") or {}).get("result") for extension in (before, after)]
    if own_budgets == [None, None]:
        return
    was, now = (
        own or manifest.budget.get("result") for own, manifest in zip(own_budgets, (pair.old, pair.new), strict=True)
    )
    at = old.place / "stubwright" / "budget", new.place / "stubwright" / "budget"
    yield from compare_result_budgets(describe_subject(new), was, now, at)


def _compare_bindings(
    old: ir.Tool, new: ir.Tool, before: Mapping[str, Any], after: Mapping[str, Any], at: tuple[Place, Place]
) -> Iterator[Change]:
    """Yield changes of what the server sets: from the caller's token, from its environment, or always the same."""
    for name in dict.fromkeys((*after, *before)):
        was, now = before.get(name), after.get(name)
        places = at[0] / "bind" / name, at[1] / "bind" / name
        if was is None and now is not None:
            known = name in (old.sent.wire.get("properties") or {})
            message = f"`{name}` is set from {_source(now)} now"
            if known or "claim" in now:
                why = "a caller that sends it is refused" if known else "a caller without the claim is refused"
                yield _change_tool(new, "SW523", "breaking", message, *places, why)
            else:
                yield _change_tool(new, "SW523", "compatible", message, *places)
        elif was is None or now is None:
            yield _change_tool(new, "SW523", "may break", f"`{name}` is no longer set by the server", *places)
        elif _source(was) != _source(now):
            message = f"`{name}` was set from {_source(was)}, and is from {_source(now)}"
            why = "a caller without the claim is refused" if "claim" in now else "calls get another value"
            yield _change_tool(new, "SW523", "may break", message, *places, why)
        elif not are_same(was.get("local"), now.get("local")):
            yield _change_tool(new, "SW523", "cosmetic", f"where the local user's `{name}` comes from changed", *places)


def _source(binding: Mapping[str, Any]) -> str:
    """Return the source of an argument's value."""
    if "claim" in binding:
        return f"the claim `{binding['claim']}`"
    if "env" in binding:
        return f"the environment variable `{binding['env']}`"
    return f"the constant {_quote(binding.get('value'))}"


def compare_apis(
    before: Mapping[str, Any], after: Mapping[str, Any], places: tuple[Mapping[str, Place], Mapping[str, Place]]
) -> Iterator[Change]:
    """Yield changes of the APIs that tools call; `places` are those of the APIs that are in the entry files."""
    for name in after:
        was, now = before.get(name), after[name]
        keys = [] if was is None else [key for key in {**now, **was} if not are_same(was.get(key), now.get(key))]
        changed = [key for key in keys if not key.startswith("x-")]
        if changed:
            old, new = (side.get(name) for side in places)
            if len(changed) == 1:
                old, new = (None if place is None else place / changed[0] for place in (old, new))
            message = f"{', '.join(f'`{key}`' for key in changed)} changed"
            why = "the calls behind its tools may fail now"
            yield _make_change(f"API `{name}`", "SW522", "may break", message, old, new, why)


def compare_extension(
    about: str, before: Mapping[str, Any], after: Mapping[str, Any], at: tuple[Place, Place]
) -> Iterator[Change]:
    """Yield changes of `deprecated`, and of what is asked."""
    if not are_same(before.get("deprecated"), after.get("deprecated")):
        places = at[0] / "deprecated", at[1] / "deprecated"
        impact: Impact = "cosmetic"
        state, why = "no longer deprecated", None
        if before.get("deprecated") and after.get("deprecated"):
            state = "deprecated with another message"
        elif after.get("deprecated"):
            impact, state = "compatible", "deprecated now"  # a minor version (SemVer 2.0.0, 7)
            use = after["deprecated"].get("use")
            why = f"callers are told to use `{use}`" if use else None
        yield _make_change(about, "SW519", impact, f"it is {state}", *places, why)
    was, now = before.get("ask") or {}, after.get("ask") or {}
    for name in dict.fromkeys((*now, *was)):
        if are_same(was.get(name), now.get(name)):
            continue
        places = at[0] / "ask" / name, at[1] / "ask" / name
        if name not in was:
            why = "a client that cannot ask its user may be refused"
            yield _make_change(about, "SW521", "may break", f"it may ask `{name}` now", *places, why)
        elif name not in now:
            yield _make_change(about, "SW521", "compatible", f"it no longer asks `{name}`", *places)
        else:
            yield _make_change(about, "SW521", "may break", f"it asks `{name}` differently", *places)


def _suggest_replacement(tool: ir.Tool) -> str | None:
    """Return advice about a tool that is gone; None if it was deprecated without a replacement."""
    if tool.deprecated is None:
        return "to let callers move first, keep it for a version, with `stubwright: {deprecated: {use: …}}`"
    use = tool.deprecated.get("use")
    return f"it was deprecated; use `{use}`" if use else None


def _get_extensions(manifest: ir.Manifest, section: str, key: str) -> dict[str, Mapping[str, Any]]:
    return {entry[key]: entry.get("stubwright") or {} for entry in manifest.document.get(section) or ()}


def _quote(value: Any) -> str:
    import json

    return "absent" if value is None else f"`{value if isinstance(value, str) else json.dumps(value)}`"


def _make_change(
    about: str,
    code: str,
    impact: Impact,
    message: str,
    old: Place | None,
    new: Place | None,
    why: str | None = None,
    side: Side = "wire",
) -> Change:
    return Change(code, side, impact, about, message, old, new, why)


def _change_tool(
    tool: ir.Tool,
    code: str,
    impact: Impact,
    message: str,
    old: Place | None,
    new: Place | None,
    why: str | None = None,
) -> Change:
    return _make_change(describe_subject(tool), code, impact, message, old, new, why)
