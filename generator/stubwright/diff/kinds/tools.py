"""Compares tools on the wire: the list, the descriptions and the schemas."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from stubwright.codegen.pages.renames import match_renamed
from stubwright.diagnostics import Place
from stubwright.diff.changes import Change, Impact, Subject
from stubwright.diff.kinds import aliases, handles
from stubwright.diff.kinds.policies import compare_policies, compare_result_budgets, describe_change, quote_value
from stubwright.diff.kinds.schemas import SchemaComparison
from stubwright.diff.subsumption.annotations import are_same
from stubwright_runtime.mcp import vocabulary

if TYPE_CHECKING:
    from stubwright import ir

_CAUTIOUS: Final[Mapping[str, bool]] = {hint.name: hint.default for hint in vocabulary.HINTS}
_TASKS: Final[Mapping[str, Any]] = {"ttl": "1h", "pollInterval": "1s", "lease": "10s", "most": 100}
"""The defaults for the manifest's `task`."""

_SUPPORT: Final[Mapping[tuple[str, str], tuple[Impact, str | None]]] = {
    ("forbidden", "optional"): ("compatible", None),
    ("required", "optional"): ("compatible", None),
    ("forbidden", "required"): ("breaking", "clients without task support can no longer call it"),
    ("optional", "required"): ("breaking", "clients without task support can no longer call it"),
    ("optional", "forbidden"): ("breaking", "calls as a task are now rejected"),
    ("required", "forbidden"): ("breaking", "calls as a task are now rejected"),
}


@dataclass(frozen=True)
class ManifestPair:
    """The old and new manifests."""

    old: ir.Manifest
    new: ir.Manifest

    def find_shared(self) -> dict[str, tuple[Place | None, Place | None]]:
        """Return the location of each shared schema in the old and new manifests."""
        old, new = (
            {schema.name: schema.schema.place for schema in manifest.shared} for manifest in (self.old, self.new)
        )
        return {name: (old.get(name), new.get(name)) for name in {**old, **new}}

    def match_renamed(self) -> dict[str, str]:
        """Map the old names of renamed tools to their new names.

        A tool was renamed if exactly one new tool differs only in its name. Tools whose old names are now aliases are
        not included.
        """
        old, new = ({tool.name: tool.definition for tool in manifest.tools} for manifest in (self.old, self.new))
        for succession in self.find_successions():
            if succession.new.name not in old:
                new.pop(succession.new.name, None)
            old.pop(succession.old.name)
        return match_renamed(old, new)

    def find_successions(self) -> list[aliases.Succession]:
        """Return the removed tools with names that are now aliases."""
        return aliases.find_successions(self.old, self.new)

    def list_both(self) -> list[tuple[ir.Tool, ir.Tool]]:
        """Return the pairs of old and new tools: equal and renamed tools in the new manifest's order, then aliased
        tools.
        """
        old = {tool.name: tool for tool in self.old.tools}
        names = {new: was for was, new in self.match_renamed().items()}
        pairs = [(old[was], tool) for tool in self.new.tools for was in [names.get(tool.name, tool.name)] if was in old]
        return pairs + [(succession.as_called(), succession.new) for succession in self.find_successions()]


def compare(pair: ManifestPair) -> Iterator[Change]:
    """Yield all changes to tools."""
    renamed = pair.match_renamed()
    succeeded = {succession.old.name: succession for succession in pair.find_successions()}
    new_tools = {tool.name: tool for tool in pair.new.tools}
    old_names = [tool.name for tool in pair.old.tools]
    for tool in pair.old.tools:
        if tool.name in renamed:
            new = new_tools[renamed[tool.name]]
            mark = f"stubwright: {{aliases: [{{name: {tool.name}}}]}}"
            why = f"to accept both names, add to the new tool `{mark}`"
            subject = Subject(describe_subject(tool), tool.place, new.place).at("name")
            yield subject.change("SW512", "breaking", f"it was renamed to `{new.name}`", why)
        elif tool.name in succeeded:
            yield succeeded[tool.name].change()
        elif tool.name not in new_tools:
            subject = Subject(describe_subject(tool), tool.place)
            yield subject.change("SW510", "breaking", "the tool was removed", _suggest_replacement(tool))
    successors = {*renamed.values(), *(succession.new.name for succession in succeeded.values())}
    for tool in pair.new.tools:
        if tool.name not in old_names and tool.name not in successors:
            yield Subject(describe_subject(tool), None, tool.place).change("SW511", "compatible", "a new tool")
    yield from aliases.compare(pair.old, pair.new)
    if [name for name in old_names if name in new_tools] != [name for name in new_tools if name in old_names]:
        yield Subject("tools").change("SW503", "cosmetic", "their order in the list changed")
    shared = pair.find_shared()
    before, after = (get_extensions(manifest, vocabulary.TOOLS) for manifest in (pair.old, pair.new))
    for old_tool, new_tool in pair.list_both():
        subject = Subject(describe_subject(new_tool), old_tool.place, new_tool.place)
        yield from _compare_tool(subject, old_tool, new_tool, pair, shared)
        extensions = before.get(old_tool.name, {}), after.get(new_tool.name, {})
        yield from _compare_served(subject, old_tool, *extensions, pair)


def describe_subject(tool: ir.Tool) -> str:
    """Return a tool as the subject of a message."""
    return f"tool `{tool.name}`"


def _compare_tool(
    subject: Subject,
    old: ir.Tool,
    new: ir.Tool,
    pair: ManifestPair,
    shared: Mapping[str, tuple[Place | None, Place | None]],
) -> Iterator[Change]:
    formats = pair.old.formats, pair.new.formats
    before, after = old.definition, new.definition
    for key in dict.fromkeys((*after, *before)):
        if key in ("name", *vocabulary.SCHEMAS) or are_same(before.get(key), after.get(key)):
            continue
        if key in ("description", "title"):
            yield compare_words(subject, key, before, after)
        elif key == "annotations":
            yield from _compare_hints(subject.at(key), old.annotations, new.annotations)
        elif key == "execution":
            yield _compare_task_support(subject.at(key), before.get(key), after.get(key))
        else:
            yield subject.at(key).change("SW502", "cosmetic", f"`{key}` changed")
    yield from _compare_headers(subject.name, old, new)
    yield from SchemaComparison(subject.name, "input", old.sent, new.sent, *formats, shared).compare()
    if old.output is not None and new.output is not None:
        yield from SchemaComparison(subject.name, "output", old.output, new.output, *formats, shared).compare()
    elif old.output is not None:
        why = "results no longer have `structuredContent`"
        gone = Subject(subject.name, old.output.place, new.place)
        yield gone.change("SW517", "breaking", "the `outputSchema` was removed", why)
    elif new.output is not None:
        added = Subject(subject.name, old.place, new.output.place)
        yield added.change("SW518", "compatible", "an `outputSchema` was added")


def compare_words(subject: Subject, key: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Change:
    """Return the change to a description or title."""
    code, message = ("SW501", "the description changed") if key == "description" else ("SW502", f"`{key}` changed")
    return subject.at(key).change_words(code, message, before.get(key), after.get(key))


def _compare_hints(annotations: Subject, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    for key in dict.fromkeys((*new, *old)):
        before, after = old.get(key), new.get(key)
        if are_same(before, after):
            continue
        subject = annotations.at(key)
        if key == "title":
            yield subject.change_words("SW502", "`annotations.title` changed", before, after)
            continue
        if key not in _CAUTIOUS:
            yield subject.change("SW502", "cosmetic", f"`annotations.{key}` changed")
            continue
        cautious = _CAUTIOUS[key]
        was, now = (cautious if value is None else value for value in (before, after))
        words = f"`{key}` changed from {str(was).lower()} to {str(now).lower()}"
        if was == now:
            yield subject.change("SW513", "cosmetic", f"`{key}` is spelled differently, but means the same")
        elif now == cautious:
            why = "clients that ran or retried the tool without asking may now have to ask"
            yield subject.change("SW513", "may break", words, why)
        else:
            yield subject.change("SW513", "compatible", words)


def _compare_task_support(subject: Subject, *executions: Any) -> Change:
    was, now = ((execution or {}).get("taskSupport", "forbidden") for execution in executions)
    if was == now:
        return subject.change("SW502", "cosmetic", "`execution` changed")
    impact, why = _SUPPORT.get((was, now), ("may break", None))
    return subject.change("SW514", impact, f"`taskSupport` changed from {was} to {now}", why)


def _compare_headers(about: str, old: ir.Tool, new: ir.Tool) -> Iterator[Change]:
    before, after = (tool.sent.wire.get("properties") or {} for tool in (old, new))
    for name in dict.fromkeys((*after, *before)):
        was, now = (
            property_.get("x-mcp-header") if isinstance(property_, dict) else None
            for property_ in (before.get(name), after.get(name))
        )
        if was != now:
            why = (
                "clients with the old list mirror arguments in the old header, and a 2026-07-28 server compares the "
                "header with the argument"
            )
            message = describe_change(f"the header of the argument `{name}`", was, now)
            subject = Subject(about, old.input.place, new.input.place).at("properties", name)
            yield subject.change("SW516", "may break", message, why)


def _compare_served(
    tool: Subject, old: ir.Tool, before: Mapping[str, Any], after: Mapping[str, Any], pair: ManifestPair
) -> Iterator[Change]:
    subject = tool.at("stubwright")
    own_policies = before.get("policy") or {}, after.get("policy") or {}
    all_tools = [manifest.document.get("policy") or {} for manifest in (pair.old, pair.new)]
    policy = [
        {
            key: own_policy.get(key, default_policy.get(key)) for key in {**own_policies[1], **own_policies[0]}
        }  # the default applies to removed keys
        for own_policy, default_policy in zip(own_policies, all_tools, strict=True)
    ]
    yield from compare_policies(subject.at("policy"), policy[0], policy[1])
    own_budgets = [(extension.get("budget") or {}).get("result") for extension in (before, after)]
    if own_budgets != [None, None]:
        defaults = [manifest.budget.get("result") for manifest in (pair.old, pair.new)]
        limits = [own or default for own, default in zip(own_budgets, defaults, strict=True)]
        yield from compare_result_budgets(subject.at("budget"), *limits)
    bindings = before.get("bind") or {}, after.get("bind") or {}
    yield from _compare_bindings(subject.at("bind"), old.sent.wire.get("properties") or {}, *bindings)
    yield from _compare_task_limits(subject.at("task"), before.get("task") or {}, after.get("task") or {})
    yield from compare_extension(subject, before, after)
    yield from handles.compare_ids(tool, before.get("handles") or {}, after.get("handles") or {})
    if not are_same(before.get("http"), after.get("http")):
        yield subject.at("http").change("SW522", "may break", "the call behind the tool changed")


def _compare_task_limits(subject: Subject, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    for key, default in _TASKS.items():
        was, now = before.get(key, default), after.get(key, default)
        if was != now:
            impact: Impact = "cosmetic" if key in ("pollInterval", "lease") else "may break"
            message = describe_change(f"`task.{key}`", was, now)
            yield subject.at(key).change("SW520", impact, message)


def _compare_bindings(
    bindings: Subject, known: Container[str], before: Mapping[str, Any], after: Mapping[str, Any]
) -> Iterator[Change]:
    """Yield changes to the arguments that the server sets. `known` contains the arguments that callers could send."""
    for name in dict.fromkeys((*after, *before)):
        was, now = before.get(name), after.get(name)
        subject = bindings.at(name)
        if was is None and now is not None:
            message = f"`{name}` is now set from {_source(now)}"
            if name in known or "claim" in now:
                why = f"a caller {'that sends it' if name in known else 'without the claim'} is rejected"
                yield subject.change("SW523", "breaking", message, why)
            else:
                yield subject.change("SW523", "compatible", message)
        elif was is None or now is None:
            yield subject.change("SW523", "may break", f"`{name}` is no longer set by the server")
        elif _source(was) != _source(now):
            message = f"the source of `{name}` changed from {_source(was)} to {_source(now)}"
            why = "a caller without the claim is rejected" if "claim" in now else "calls use another value"
            yield subject.change("SW523", "may break", message, why)
        elif not are_same(was.get("local"), now.get("local")):
            yield subject.change("SW523", "cosmetic", f"the local user's source of `{name}` changed")


def _source(binding: Mapping[str, Any]) -> str:
    if "claim" in binding:
        return f"the claim `{binding['claim']}`"
    if "env" in binding:
        return f"the environment variable `{binding['env']}`"
    return f"the constant {quote_value(binding.get('value'))}"


def compare_apis(
    entry_files: Subject, old: Mapping[str, Any], new: Mapping[str, Any], pair: ManifestPair
) -> Iterator[Change]:
    """Yield changes to the APIs that tools call. An API has a source location only if the entry file declares it.

    Args:
        entry_files: The root locations of the old and new entry files.
        old: The old entry file's `apis`.
        new: The new entry file's `apis`.
        pair: The lowered manifests.
    """
    before, after = (manifest.document.get("apis") or {} for manifest in (pair.old, pair.new))
    for name in after:
        was, now = before.get(name), after[name]
        keys = [] if was is None else [key for key in {**now, **was} if not are_same(was.get(key), now.get(key))]
        changed = [key for key in keys if not key.startswith("x-")]
        if changed:
            subject = Subject(
                f"API `{name}`", entry_files.old if name in old else None, entry_files.new if name in new else None
            ).at("apis", name)
            message = f"{', '.join(f'`{key}`' for key in changed)} changed"
            why = "the calls behind its tools may now fail"
            yield subject.at(*changed if len(changed) == 1 else ()).change("SW522", "may break", message, why)


def compare_extension(subject: Subject, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    """Yield changes to the deprecation and questions in an extension."""
    was, now = before.get("deprecated"), after.get("deprecated")
    if not are_same(was, now):
        impact: Impact = "cosmetic"
        state, why = "no longer deprecated", None
        if was and now:
            state = "deprecated with another message"
        elif now:
            impact, state = "compatible", "now deprecated"  # a minor version (SemVer 2.0.0, 7)
            use = now.get("use")
            why = f"callers should use `{use}`" if use else None
        yield subject.at("deprecated").change("SW519", impact, f"it is {state}", why)
    was, now = before.get("ask") or {}, after.get("ask") or {}
    for name in dict.fromkeys((*now, *was)):
        if are_same(was.get(name), now.get(name)):
            continue
        question = subject.at("ask", name)
        if name not in was:
            why = "calls from clients that cannot ask their user may be rejected"
            yield question.change("SW521", "may break", f"the question `{name}` was added", why)
        elif name not in now:
            yield question.change("SW521", "compatible", f"the question `{name}` was removed")
        else:
            yield question.change("SW521", "may break", f"the question `{name}` changed")


def _suggest_replacement(tool: ir.Tool) -> str | None:
    if tool.deprecated is None:
        return "to let callers migrate first, keep it for one version with `stubwright: {deprecated: {use: …}}`"
    use = tool.deprecated.get("use")
    return f"it was deprecated; use `{use}`" if use else None


def get_extensions(manifest: ir.Manifest, section: vocabulary.Section) -> dict[str, Mapping[str, Any]]:
    """Return the `stubwright` object of each list entry, by key."""
    return {entry[section.key]: entry.get("stubwright") or {} for entry in manifest.document.get(section.name) or ()}
