"""Semantic checks of a manifest, one function per rule.

Errors are faults that would break any server. Warnings cover MCP's SHOULDs and problems for clients and models.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stubwright.compile.audience import aliases, client_validators, hosts, toolsets
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
    from stubwright.compile.resolve import ResolvedBundle
    from stubwright.diagnostics import Diagnostic

_RULES = (
    names.check_unique_on_the_wire,
    names.check_unique_in_python,
    names.check_unique_classes,
    names.check_python_names,
    names.check_package,
    names.check_writable,
    names.check_handlers,
    names.report_features,
    names.check_wire_names,
    references.check_resolved,
    references.check_finite,
    references.check_one_dialect,
    references.check_bundled,
    references.check_unique_anchors,
    headers.check_names,
    headers.check_unique,
    headers.check_types,
    headers.check_reachable,
    headers.check_not_sensitive,
    values.check_formats,
    values.check_patterns,
    client_validators.check_javascript,
    client_validators.check_official_clients,
    client_validators.check_divided_objects,
    values.check_compilable,
    values.check_defaults,
    values.check_schema_examples,
    values.check_examples,
    values.check_exact_examples,
    values.check_bound_values,
    values.check_satisfiable,
    contradictions.check_required,
    contradictions.check_bounds,
    tools.check_overlays,
    tools.check_deprecations,
    tools.check_paginated,
    aliases.check,
    handles.check_kinds,
    handles.check_places,
    handles.check_lifetimes,
    handles.check_uses,
    tools.check_redactions,
    tools.check_confirmations,
    tools.check_once,
    authorization.check_one_source,
    authorization.check_bound,
    authorization.check_bound_in_all,
    authorization.check_reach,
    authorization.check_unbound,
    http.check_bound_by_apis,
    authorization.check_issuers,
    authorization.check_sources,
    authorization.check_spelling,
    authorization.check_limits,
    tools.check_public_cache,
    tools.check_described,
    tools.check_inlined,
    tools.check_hints,
    tools.check_repeatable,
    tools.check_web_resources,
    tools.check_icons,
    primitives.check_templates,
    primitives.check_uris,
    primitives.check_contents,
    primitives.check_arguments,
    primitives.check_completions,
    primitives.check_offered,
    primitives.check_messages,
    elicitation.check_flat,
    elicitation.check_names,
    http.check_apis,
    http.check_complete,
    http.check_declared,
    http.check_urls,
    http.check_arguments,
    http.check_securities,
    http.check_parts,
    http.check_headers,
    http.check_unused_arguments,
    responses.check_parts,
    responses.check_headers,
    responses.check_pages,
    responses.check_large,
    tasks.check_possible,
    tasks.check_asked_before,
    tasks.check_exchanged,
    revisions.check_age,
    toolsets.check,
    hosts.check,
    skills.check,
    lint.check_codes,
)


_GLOBAL_RULES = frozenset(
    {names.check_unique_on_the_wire, names.check_unique_in_python, names.check_unique_classes}
    | {authorization.check_sources, authorization.check_spelling, authorization.check_bound_in_all}
    | {handles.check_uses, http.check_apis, http.check_bound_by_apis, client_validators.check_javascript}
    | {
        client_validators.check_official_clients,
        client_validators.check_divided_objects,
        hosts.check,
        aliases.check,
        tools.check_deprecations,
        tools.check_overlays,
        tools.check_public_cache,
        tools.check_repeatable,
        values.check_formats,
        toolsets.check,
    }
)
"""Rules that compare tools. All others check each entry on its own."""

_SLOW_WARNINGS = frozenset({values.check_defaults, values.check_schema_examples, values.check_satisfiable})
"""Rules that only warn, and are slow because they try example values."""


def check(
    resolved: ResolvedBundle, part: ResolvedBundle | None = None, *, errors_only: bool = False
) -> list[Diagnostic]:
    """Return the errors and warnings of a structurally valid manifest, except ignored warnings.

    Args:
        resolved: The manifest.
        part: The manifest without tools that already passed.
        errors_only: Whether to skip slow rules that only warn.
    """
    single = part or resolved
    diagnostics = dict.fromkeys(
        diagnostic
        for rule in _RULES
        if not (errors_only and rule in _SLOW_WARNINGS)
        for diagnostic in rule(resolved if rule in _GLOBAL_RULES else single)
    )
    return lint.suppress(resolved, diagnostics)
