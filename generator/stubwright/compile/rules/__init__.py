"""What a manifest means: rules that its structure alone cannot hold, one small function each.

Takes a resolved manifest that is structurally valid, with every schema valid in its dialect; gives all findings at
once. Errors are what a server must not ship; warnings are what MCP says one SHOULD do, what clients in the field choke
on, or what harms a model. Nothing is changed, and no reference is fetched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stubwright.compile.audience import aliases, hosts, readers, toolsets
from stubwright.compile.rules import (
    authorization,
    contradictions,
    elicitation,
    handles,
    headers,
    http,
    lint,
    names,
    primitives,
    references,
    responses,
    revisions,
    tasks,
    tools,
    values,
)
from stubwright.compile.skills import checks as skills

if TYPE_CHECKING:
    from stubwright.compile.resolve import Resolved
    from stubwright.diagnostics import Diagnostic

_RULES = (
    names.unique_on_the_wire,
    names.unique_in_python,
    names.unique_classes,
    names.python_names,
    names.package,
    names.writable,
    names.handlers,
    names.features,
    names.wire_names,
    references.resolved,
    references.finite,
    references.one_dialect,
    references.bundled,
    references.unique_anchors,
    headers.names,
    headers.unique,
    headers.types,
    headers.reachable,
    headers.not_sensitive,
    values.patterns,
    readers.javascript,
    readers.official_clients,
    readers.divided_objects,
    values.compilable,
    values.defaults,
    values.schema_examples,
    values.examples,
    values.exact_examples,
    values.bound_values,
    values.fillable,
    contradictions.required,
    contradictions.bounds,
    tools.overlays_apply,
    tools.deprecations,
    tools.paginated,
    aliases.check,
    handles.known,
    handles.placed,
    handles.lasting,
    handles.used,
    tools.redactions,
    tools.confirmations,
    authorization.sourced,
    authorization.bound,
    authorization.bound_in_all,
    authorization.reached,
    authorization.unbound,
    http.bound_by_apis,
    authorization.issuers,
    authorization.possible,
    authorization.spelled,
    authorization.limited,
    tools.public_cache,
    tools.described,
    tools.inlined,
    tools.consistent_hints,
    tools.web_resources,
    tools.safe_icons,
    primitives.templates,
    primitives.uris,
    primitives.contents,
    primitives.arguments,
    primitives.completions,
    primitives.offered,
    primitives.messages,
    elicitation.flat,
    elicitation.named,
    http.apis,
    http.complete,
    http.declared,
    http.urls,
    http.arguments,
    http.securities,
    http.parts,
    http.headers,
    http.nothing_lost,
    responses.parts,
    responses.headers,
    responses.pages,
    responses.large,
    tasks.possible,
    tasks.asked_before,
    revisions.old_enough,
    toolsets.check,
    hosts.check,
    skills.check,
    lint.known_codes,
)


_OF_ALL_TOOLS = frozenset(
    {names.unique_on_the_wire, names.unique_in_python, names.unique_classes}
    | {authorization.possible, authorization.spelled, authorization.bound_in_all}
    | {handles.used, http.apis, http.bound_by_apis, readers.javascript}
    | {
        readers.official_clients,
        readers.divided_objects,
        hosts.check,
        aliases.check,
        tools.deprecations,
        tools.overlays_apply,
        tools.public_cache,
        toolsets.check,
    }
)
"""The rules that compare tools, or look for some among all of them; the others look at one thing at a time."""


def check(resolved: Resolved, part: Resolved | None = None) -> list[Diagnostic]:
    """Return all that is wrong or doubtful in a structurally valid manifest, without the warnings that it ignores.

    Args:
        resolved: The manifest.
        part: The same without tools that are known to be right by themselves.
    """
    single = part or resolved
    diagnostics = dict.fromkeys(
        diagnostic for rule in _RULES for diagnostic in rule(resolved if rule in _OF_ALL_TOOLS else single)
    )
    return lint.suppressed(resolved, diagnostics)


def suppressed(resolved: Resolved, diagnostics: list[Diagnostic]) -> list[Diagnostic]:
    """Return `diagnostics` of any stage without the warnings that `lint: {ignore: …}` silences."""
    return lint.suppressed(resolved, diagnostics)
