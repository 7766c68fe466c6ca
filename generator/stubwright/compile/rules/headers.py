"""Rules about `x-mcp-header`, which mirrors arguments in HTTP headers (MCP 2026-07-28, Tools and Transports).

Clients must ignore tools that break one of these rules, except for the last one, which only warns.
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
"""Name endings that suggest personal data (GDPR, articles 4 and 9). `email_count` and `address_type` do not match."""

_PERSONAL_FORMATS = frozenset({"email", "iban", "idn-email", "phone", "phone-number"})
_PAGES = frozenset({"page", "next", "continuation", "cursor", "sync"})


def check_names(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that the value, which becomes part of a header name, is a token (RFC 9110, section 5.6.2)."""
    for place, _, schema in _list_mirrored(resolved):
        value = schema[HEADER]
        if isinstance(value, str) and TOKEN.fullmatch(value):
            continue
        if not isinstance(value, str):
            problem = "is not a string"
        elif not value:
            problem = "is empty"
        else:
            problem = f"`{value}` has characters that header names cannot contain: {_list_invalid_characters(value)}"
        yield Diagnostic(
            "SW230",
            f"`{HEADER}` {problem}",
            place / HEADER,
            'write the part after "Mcp-Param-", using letters, digits and hyphens, such as "Region"',
        )


def check_unique(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that no two properties of an `inputSchema` share a header. Header names are case-insensitive."""
    for tool in resolved.tools:
        first: dict[str, str] = {}
        for field, outline in resolved.list_schemas(tool):
            for place, pointer, schema in _list_marked(outline):
                value = schema[HEADER]
                if field == "inputSchema" and pointer and isinstance(value, str):
                    name = str(pointer[-1])
                    other = first.setdefault(value.lower(), name)
                    if other != name:
                        yield Diagnostic(
                            "SW231",
                            f"`{other}` and `{name}` of `{tool.name}` have the same header `{value}` (ignoring case)",
                            place / HEADER,
                            "rename one of the headers",
                        )


def check_types(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that mirrored properties are strings, integers or booleans."""
    for place, _, schema in _list_mirrored(resolved):
        kind = schema.get("type")
        if kind in _TYPES:
            continue
        if kind == "number":
            message = f"`{HEADER}` is not allowed on a `number`: clients format numbers differently"
            fix = "make the property an `integer` or a `string`, or remove the header"
        else:
            message = f"`{HEADER}` needs a property whose `type` is `string`, `integer` or `boolean`"
            fix = "write one of these types in the property's own schema, or remove the header"
        yield Diagnostic("SW232", message, place / "type" if "type" in schema else (place / HEADER).point_at_key(), fix)


def check_reachable(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that the keyword is on an `inputSchema` property that is reachable through nested `properties` alone."""
    for field, outline in _list_outlines(resolved):
        for place, pointer, _ in _list_marked(outline):
            if field == "outputSchema":
                message = f"`{HEADER}` has no effect in an `outputSchema`: results are not mirrored"
            elif field == "schemas":
                message = f"clients ignore `{HEADER}` in a shared schema: they do not follow references"
            elif not _is_reachable(pointer):
                message = f"clients ignore `{HEADER}` here: they only search `properties`, including nested ones"
            else:
                continue
            yield Diagnostic(
                "SW233", message, (place / HEADER).point_at_key(), f"put `{HEADER}` on a property of the `inputSchema`"
            )


def check_not_sensitive(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that no secret or personal data is mirrored (SHOULD NOT), since proxies log headers."""
    for place, pointer, schema in _list_mirrored(resolved):
        if not _is_reachable(pointer):
            continue
        name = str(pointer[-1])
        words = [word.lower() for word in naming.split_words(name)]
        if _is_secret(words, schema):
            kind = "a secret"
        elif _is_personal(words, schema):
            kind = "personal data"
        else:
            continue
        yield Diagnostic(
            "SW331",
            f"`{name}` looks like {kind}, and would be sent in a header",
            (place / HEADER).point_at_key(),
            f"remove `{HEADER}`: proxies read and log headers",
        )


def _is_secret(words: list[str], schema: dict[str, Any]) -> bool:
    if schema.get("format") == "password" or schema.get("writeOnly") is True:
        return True
    return _SENSITIVE.search(" ".join(words)) is not None and not _PAGES & set(words)


def _is_personal(words: list[str], schema: dict[str, Any]) -> bool:
    if schema.get("type") == "boolean":  # a flag such as `send_email` is not an address
        return False
    return schema.get("format") in _PERSONAL_FORMATS or _PERSONAL.search(" ".join(words)) is not None


def _list_mirrored(resolved: ResolvedBundle) -> Iterator[tuple[Place, Pointer, dict[str, Any]]]:
    for field, outline in _list_outlines(resolved):
        if field == "inputSchema":
            yield from _list_marked(outline)


def _list_outlines(resolved: ResolvedBundle) -> Iterator[tuple[str, Outline]]:
    for tool in resolved.tools:
        yield from resolved.list_schemas(tool)
    for outline in resolved.shared.values():
        yield "schemas", outline


def _list_marked(outline: Outline) -> Iterator[tuple[Place, Pointer, dict[str, Any]]]:
    for pointer, schema in outline.find_having(HEADER):
        yield outline.locate(pointer), pointer, schema


def _is_reachable(pointer: Pointer) -> bool:
    return bool(pointer) and all(step == "properties" for step in pointer[::2]) and len(pointer) % 2 == 0


def _list_invalid_characters(value: str) -> str:
    strange = sorted({char for char in value if not TOKEN.fullmatch(char)})
    return ", ".join("a space" if char == " " else f"`{char}`" for char in strange[:5])
