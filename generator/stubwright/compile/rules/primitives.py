"""Rules about resources, resource templates and prompts."""

from __future__ import annotations

import binascii
import re
from typing import TYPE_CHECKING, Final

from stubwright.compile import completions as offers
from stubwright.diagnostics import Diagnostic, Place
from stubwright.diagnostics.suggestions import did_you_mean, find_nearest, quote, suggest
from stubwright_runtime.mcp import vocabulary
from stubwright_runtime.mcp.uri_templates import TemplateError, UriTemplate
from stubwright_runtime.values.text import PLACEHOLDER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stubwright.compile.resolve import Declaration, ResolvedBundle
    from stubwright.ir import Json

_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def check_templates(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that the server can match URI templates (RFC 6570; MCP 2025-11-25, "Resource Templates")."""
    for template in resolved.primitives[vocabulary.TEMPLATES]:
        try:
            UriTemplate.parse(template.key)
        except TemplateError as error:
            message = f"`{template.key}` cannot be used: {error}"
            yield Diagnostic("SW255", message, template.place / template.section.key, error.fix)


def check_uris(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that resource URIs are absolute (RFC 3986, section 4.3)."""
    for section in (vocabulary.RESOURCES, vocabulary.TEMPLATES):
        for primitive in resolved.primitives[section]:
            uri, place = primitive.key, primitive.place / section.key
            if re.search(r"[\s\x00-\x1f\x7f]", uri):
                yield Diagnostic("SW256", "the URI contains whitespace", place, "write `%20` for a space")
            elif not _URI.match(uri):
                fix = f"write an absolute URI, such as `docs://{uri.lstrip('/') or 'readme'}`"
                yield Diagnostic("SW256", f"`{uri}` has no scheme", place, fix)


def check_contents(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that no resource has both `file` and `text`."""
    for resource in resolved.primitives[vocabulary.RESOURCES]:
        if resource.extension.keys() >= {"file", "text"}:
            at = (resource.place / "stubwright" / "text").point_at_key()
            yield Diagnostic("SW257", f"`{resource.name}` has both `file` and `text`", at, "remove one")


def check_arguments(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that a prompt's arguments have unique names."""
    for prompt in resolved.primitives[vocabulary.PROMPTS]:
        seen: set[str] = set()
        for index, argument in enumerate(prompt.wire.get("arguments") or ()):
            if argument["name"] in seen:
                at = prompt.place / "arguments" / index / "name"
                message = f"`{prompt.name}` has the argument `{argument['name']}` twice"
                yield Diagnostic("SW210", message, at, "rename one")
            seen.add(argument["name"])


def check_completions(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that `complete` only lists existing arguments, and only references schemas with an `enum` of strings."""
    known_names = [(primitive, _list_variables(primitive)) for primitive in resolved.primitives[vocabulary.TEMPLATES]]
    known_names += [(primitive, _list_arguments(primitive)) for primitive in resolved.primitives[vocabulary.PROMPTS]]
    for primitive, known in known_names:
        for name, place, offer in offers.find_references(primitive):
            if offers.resolves(resolved, place) and not offers.find_values(resolved, place):
                message = f"`{offer['$ref']}` has no `enum` with strings, so `{name}` has no completions"
                yield Diagnostic(
                    "SW272", message, place / "$ref", "add an `enum` to the schema, or write the values here"
                )
        for name in primitive.extension.get("complete") or {}:
            if known is not None and name not in known:
                at = (primitive.place / "stubwright" / "complete" / name).point_at_key()
                yield Diagnostic("SW258", f"`{primitive.name}` has no argument `{name}`", at, _advise(name, known))


def check_offered(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Warn about prompt completions that are not in their argument's `enum`."""
    for prompt in resolved.primitives[vocabulary.PROMPTS]:
        complete = prompt.extension.get("complete") or {}
        references = {name: place for name, place, _ in offers.find_references(prompt)}
        for argument in prompt.wire.get("arguments") or ():
            name, known = argument["name"], argument.get("enum")
            offer = complete.get(name)
            if not isinstance(known, list) or offer is None or offer == "handler":
                continue
            at = references.get(name, prompt.place / "stubwright" / "complete" / name)
            values = offers.find_values(resolved, at) if name in references else offer
            for index, value in enumerate(values):
                if value not in known:
                    message = f"`{prompt.name}` offers `{value}`, which is not in the `enum` of `{name}`"
                    fix = did_you_mean(value, [each for each in known if isinstance(each, str)], "values")
                    yield Diagnostic("SW344", message, at / "$ref" if name in references else at / index, fix)


def check_messages(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that messages have exactly one kind of content, and only use their prompt's arguments."""
    for prompt in resolved.primitives[vocabulary.PROMPTS]:
        at = prompt.place / "stubwright"
        if prompt.extension.get("messages") == []:
            yield Diagnostic(
                "SW257", f"`{prompt.name}` has no messages", at / "messages", "add a message, or remove `messages`"
            )
        if prompt.extension.get("messages") and prompt.extension.get("ask"):
            fix = "remove `messages`, and ask in a handler method"
            yield Diagnostic(
                "SW257",
                f"`{prompt.name}` has fixed messages, so its questions are never asked",
                (at / "ask").point_at_key(),
                fix,
            )
        for index, message in enumerate(prompt.extension.get("messages") or ()):
            place = prompt.place / "stubwright" / "messages" / index
            kinds = [kind for kind in vocabulary.CONTENT if kind in message]
            if len(kinds) != 1:
                yield Diagnostic(
                    "SW257",
                    f"the message has {_list_contents(kinds)}",
                    place,
                    f"write one of {quote(vocabulary.CONTENT)}",
                )
            for kind in kinds:
                yield from _check_part(kind, message[kind], place / kind, prompt)


def _check_part(kind: str, part: Json, place: Place, prompt: Declaration) -> Iterator[Diagnostic]:
    if kind == "text":
        yield from _check_placeholders(part, place, prompt)
        return
    sources = [key for key in ("text", "file", "data") if key in part]
    if len(sources) != 1:
        known = ("text", "file", "data") if kind == "resource" else ("file", "data")
        yield Diagnostic("SW257", f"the {kind} has {_list_contents(sources)}", place, f"write one of {quote(known)}")
    if kind != "resource" and not str(part.get("mimeType", f"{kind}/")).startswith(f"{kind}/"):
        message = f"`{part['mimeType']}` is not the MIME type of {'an' if kind[0] in 'ai' else 'a'} {kind}"
        yield Diagnostic("SW257", message, place / "mimeType", f"write a type that starts with `{kind}/`")
    if kind != "resource" and "mimeType" not in part:
        example = {"image": "image/png", "audio": "audio/wav"}[kind]
        yield Diagnostic("SW257", f"the {kind} has no `mimeType`", place, f"add it, such as `mimeType: {example}`")
    if "data" in part:
        try:
            binascii.a2b_base64(part["data"], strict_mode=True)  # by default, invalid characters are skipped
        except ValueError as error:
            yield Diagnostic(
                "SW257", f"the data is not base64: {error}", place / "data", "write base64, or specify a `file`"
            )
    for key in ("uri", "text"):
        if kind == "resource" and key in part:
            yield from _check_placeholders(part[key], place / key, prompt)


def _list_contents(keys: list[str]) -> str:
    return f"both {quote(keys).replace(' or ', ' and ')}" if keys else "no content"


def _check_placeholders(text: str, place: Place, prompt: Declaration) -> Iterator[Diagnostic]:
    known = _list_arguments(prompt)
    for name in dict.fromkeys(PLACEHOLDER.findall(text)):
        if name not in known:
            yield Diagnostic("SW258", f"`{prompt.name}` has no argument `{name}`", place, _advise(name, known))


def _list_arguments(prompt: Declaration) -> tuple[str, ...]:
    return tuple(argument["name"] for argument in prompt.wire.get("arguments") or ())


def _list_variables(template: Declaration) -> tuple[str, ...] | None:
    try:
        return tuple(variable.name for variable in UriTemplate.parse(template.key).variables)
    except TemplateError:
        return None


def _advise(name: str, known: tuple[str, ...]) -> str:
    if near := find_nearest(name, known):
        return suggest(name, near)
    listed = ", ".join(f"`{name}`" for name in known)
    return f"its arguments are {listed}" if known else "declare it under `arguments`, which is empty"
