"""Docstrings for generated methods: the manifest's text, and what callers need to know about policies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from stubwright_runtime.mcp import vocabulary
from stubwright_runtime.values.text import split_pointer

if TYPE_CHECKING:
    from stubwright import ir
    from stubwright.pycode import Code


def describe_tool(tool: ir.Tool) -> str:
    """Return a tool's description, then its wire name and its hints."""
    hints = list(_hints(tool.annotations))
    facts = f"Tool ``{tool.name}``{': ' if hints else ''}{', '.join(hints)}."
    facts = " ".join(
        filter(None, (facts, *_limits(tool), describe_deprecation(tool.deprecated), describe_old_names(tool)))
    )
    title = tool.definition.get("title")
    words = tool.description or (f"{title}." if isinstance(title, str) and title else "")
    return f"{words.strip()}\n\n{facts}" if words.strip() else facts


def _limits(tool: ir.Tool) -> Iterator[str]:
    if tool.policy.get("confirm"):
        yield "The server first asks the user for permission."
    if scopes := tool.policy.get("scopes"):
        yield f"Requires the scope{'s' if len(scopes) > 1 else ''} {', '.join(f'``{scope}``' for scope in scopes)}."
    if rate := tool.policy.get("rateLimit"):
        yield f"Rate limit: ``{rate}``."
    if once := tool.policy.get("once"):
        key = once["key"]
        names = {"all": "the same arguments", "request": "the same idempotency key"}
        words = names[key] if isinstance(key, str) else f"the same {', '.join(f'``{name}``' for name in key)}"
        yield f"Repeated calls with {words} run only once."
    arguments = tool.input.wire.get("properties") or {}
    redacted = [
        pointer for pointer in tool.policy.get("redact") or () if split_pointer(f"{pointer}/")[0] in {*arguments, ""}
    ]
    if redacted:
        yield f"Never logged: {', '.join(f'``{pointer}``' for pointer in redacted)}."


def _hints(annotations: Mapping[str, ir.Json]) -> Iterator[str]:
    for hint in vocabulary.HINTS:
        value = annotations.get(hint.name)
        if isinstance(value, bool) and (value or hint.default):
            yield hint.describe(value)


def describe_primitive(primitive: ir.Primitive) -> str:
    """Return a primitive's description, then its kind and its wire name."""
    definition = primitive.definition
    facts = f"{capitalize(primitive.kind)} ``{primitive.key}``."
    text = definition.get("description") or (f"{definition['title']}." if definition.get("title") else "")
    facts = " ".join(filter(None, (facts, describe_deprecation(primitive.deprecated))))
    return f"{text.strip()}\n\n{facts}" if isinstance(text, str) and text.strip() else facts


def describe_deprecation(deprecated: Mapping[str, str] | None) -> str | None:
    """Return a sentence with a deprecation's version, replacement and reason, or None without a deprecation."""
    if deprecated is None:
        return None
    since = f" since {deprecated['since']}" if "since" in deprecated else ""
    use = f"; use {deprecated['use']}" if "use" in deprecated else ""
    reason = " ".join(deprecated.get("reason", "").split())
    return f"Deprecated{since}{use}.{' ' if reason else ''}{reason}"


def describe_old_names(tool: ir.Tool) -> str | None:
    """Return a sentence with a tool's old names and the last version of each, or None if it has no old names."""
    until = [f" up to version {alias['removeAfter']}" if "removeAfter" in alias else "" for alias in tool.aliases]
    names = [f"``{alias['name']}``{end}" for alias, end in zip(tool.aliases, until, strict=True)]
    return f"Also callable as {' and as '.join(names)}." if names else None


def describe_parameter(text: str, default: Code | None) -> str:
    """Describe a client method's parameter: the schema's description, and the default that the server applies."""
    if default is None:
        return text
    sentences = text if not text or text.endswith((".", "!", "?", ":")) else f"{text}."
    return f"{sentences} Default: {default}.".strip()


def describe_arguments(doc: str, described: Iterable[tuple[str, str]]) -> str:
    """Append an `Args:` section for the arguments that have a description."""
    lines = [f"    {name}: {text.replace(_LINE, _INDENTED)}" for name, text in described if text]
    return "\n".join([doc, "", "Args:", *lines]) if lines else doc


_LINE = "\n"
_INDENTED = "\n        "


def quote_instructions(manifest: ir.Manifest) -> str:
    """Return the server's instructions as a separate paragraph, or an empty string."""
    instructions = manifest.server.get("instructions")
    return f"\n\n{instructions.strip()}" if isinstance(instructions, str) and instructions.strip() else ""


def capitalize(text: str) -> str:
    """Capitalize the first letter of `text`, as in a sentence."""
    return text[:1].upper() + text[1:]
