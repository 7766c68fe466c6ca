"""Rules about `x-mcp-header`: parameters mirrored into HTTP headers (MCP 2026-07-28, Tools and Transports).

Clients must omit a tool that breaks these rules, so all are errors except the last.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from stubwright import naming
from stubwright.diagnostics import Diagnostic, Place, Pointer
from stubwright.http import TOKEN
from stubwright_runtime.mcp.vocabulary import HEADER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stubwright.compile.resolve import ResolvedBundle
    from stubwright.jsonschema.references import Outline

_TYPES = ("string", "integer", "boolean")
_SENSITIVE = re.compile(
    r"\b(pass(word|wd|phrase|code)?|pwd|secret|token|credentials?|authorization|bearer|cookie|jwt|ssn|cvv|cvc|pin)\b"
    r"|\b(api|private|access|secret|signing|encryption) ?key\b|\bapikey\b|\b(credit )?card number\b|\bsocial security\b"
)
_PERSONAL = re.compile(
    r"\b("
    r"(e ?mail|phone|telephone|tel|mobile|cell ?phone|fax|whats ?app|msisdn)s?"
    r"|(first|last|full|given|family|middle|maiden|birth|legal) ?name|surname|forename"
    r"|(birth ?|date of birth|dob)(date|day|place)?|place of birth|born( (on|at))?"
    r"|(national|identity|personal|citizen|tax|tax ?payer|patient)( insurance)? ?(id|identifier|number|no|nr|card|code)"
    r"|national insurance|itin|nino|aadhaar|cpf|bsn|pesel|nric|passport|id card|driv(er|ers|ing) ?licen[cs]e"
    r"|licen[cs]e plate|number plate|iban|(bank )?account (number|no|nr)|bank account|sort code|routing number"
    r"|(credit|debit|bank|payment) ?card|card ?(number|no|nr|holder)"
    r"|address(es)?|addr|street|address ?line|ip|ipv[46]|mac address|lat ?(lng|lon|long)|gps"
    r"|gender|ethnicity|religion|diagnosis|medical record|blood (type|group)|sexual orientation|marital status"
    r")( ?(address|addr|number|no|nr|id|value|text|string|line|code|[0-9]+))*$"
)
"""The end of names of personal data (GDPR, articles 4 and 9); `email_count` and `address_type` do not match."""

_PERSONAL_FORMATS = frozenset({"email", "iban", "idn-email", "phone", "phone-number"})
_PAGES = frozenset({"page", "next", "continuation", "cursor", "sync"})


def check_names(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that the value is an RFC 9110 token (section 5.6.2), since it becomes part of a header's name."""
    for place, _, schema in _carriers(resolved):
        value = schema[HEADER]
        if isinstance(value, str) and TOKEN.fullmatch(value):
            continue
        if not isinstance(value, str):
            problem = "is not a string"
        elif not value:
            problem = "is empty"
        else:
            problem = f"`{value}` has {_strange(value)}, which a header's name cannot have"
        yield Diagnostic(
            "SW230",
            f"`{HEADER}` {problem}",
            place / HEADER,
            'write the part after "Mcp-Param-", in letters, digits and hyphens, such as "Region"',
        )


def check_unique(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that no two properties of an `inputSchema` share a header, whose name ignores case."""
    for tool in resolved.tools:
        first: dict[str, str] = {}
        for field, outline in resolved.list_schemas(tool):
            for place, pointer, schema in _in(outline):
                value = schema[HEADER]
                if field == "inputSchema" and pointer and isinstance(value, str):
                    name = str(pointer[-1])
                    other = first.setdefault(value.lower(), name)
                    if other != name:
                        yield Diagnostic(
                            "SW231",
                            f"`{other}` and `{name}` of `{tool.name}` have the same header `{value}` (ignoring case)",
                            place / HEADER,
                            "use another header for one",
                        )


def check_types(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that the property is a string, an integer or a boolean."""
    for place, _, schema in _carriers(resolved):
        kind = schema.get("type")
        if kind in _TYPES:
            continue
        if kind == "number":
            message = f"`{HEADER}` cannot be on a `number`: clients write numbers differently in headers"
            fix = "make the property an `integer` or a `string`, or remove the header"
        else:
            message = f"`{HEADER}` needs a property whose `type` is `string`, `integer` or `boolean`"
            fix = "write one of these types in the property's own schema, or remove the header"
        yield Diagnostic("SW232", message, place / "type" if "type" in schema else (place / HEADER).point_at_key(), fix)


def check_reachable(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that it is in an `inputSchema`, on a property that is reachable through `properties` alone."""
    for field, outline in _outlines(resolved):
        for place, pointer, _ in _in(outline):
            if field == "outputSchema":
                message = f"`{HEADER}` has no effect in an `outputSchema`: results have no such headers"
            elif field == "schemas":
                message = f"clients do not find `{HEADER}` in a shared schema: they do not follow references"
            elif not _chained(pointer):
                message = (
                    f"clients do not find `{HEADER}` here: they look only at properties, and at their `properties`"
                )
            else:
                continue
            yield Diagnostic(
                "SW233", message, (place / HEADER).point_at_key(), f"put `{HEADER}` on a property of the `inputSchema`"
            )


def check_not_sensitive(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that no secret or personal data is mirrored (SHOULD NOT), since proxies read and log headers."""
    for place, pointer, schema in _carriers(resolved):
        if not _chained(pointer):
            continue
        name = str(pointer[-1])
        words = [word.lower() for word in naming.split_words(name)]
        if _is_secret(words, schema):
            what = "a secret"
        elif _is_personal(words, schema):
            what = "personal data"
        else:
            continue
        yield Diagnostic(
            "SW331",
            f"`{name}` looks like {what}, and would be sent in a header",
            (place / HEADER).point_at_key(),
            f"remove `{HEADER}`: proxies and logs on the way see headers",
        )


def _is_secret(words: list[str], schema: dict[str, Any]) -> bool:
    if schema.get("format") == "password" or schema.get("writeOnly") is True:
        return True
    return _SENSITIVE.search(" ".join(words)) is not None and not _PAGES & set(words)


def _is_personal(words: list[str], schema: dict[str, Any]) -> bool:
    if schema.get("type") == "boolean":  # a flag such as `send_email` does not contain the address
        return False
    return schema.get("format") in _PERSONAL_FORMATS or _PERSONAL.search(" ".join(words)) is not None


def _carriers(resolved: ResolvedBundle) -> Iterator[tuple[Place, Pointer, dict[str, Any]]]:
    """Yield every schema of an input that has the keyword."""
    for field, outline in _outlines(resolved):
        if field == "inputSchema":
            yield from _in(outline)


def _outlines(resolved: ResolvedBundle) -> Iterator[tuple[str, Outline]]:
    for tool in resolved.tools:
        yield from resolved.list_schemas(tool)
    for outline in resolved.shared.values():
        yield "schemas", outline


def _in(outline: Outline) -> Iterator[tuple[Place, Pointer, dict[str, Any]]]:
    for pointer, schema in outline.find_having(HEADER):
        yield Place(outline.place.file, (*outline.place.pointer, *pointer)), pointer, schema


def _chained(pointer: Pointer) -> bool:
    return bool(pointer) and all(step == "properties" for step in pointer[::2]) and len(pointer) % 2 == 0


def _strange(value: str) -> str:
    strange = sorted({char for char in value if not TOKEN.fullmatch(char)})
    return ", ".join("a space" if char == " " else f"`{char}`" for char in strange[:5])
