"""Converts an API's response to a tool result, or to an error that quotes the redacted start of its body."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote, quote_plus, unquote, urlsplit

from ..errors import ToolError
from ..observability.redaction import REDACTED, mask
from ..package import Tool
from ..server.handlers.content import Content, audio, embedded, image, link
from ..values.json import Json, refuse_constant
from ..values.sanitizing import check_mime_type, clean
from ..values.units import parse_retry_after
from .media import is_text

_SHORTEST: Final = 6
"""The minimum length of credentials to redact in successful responses, in characters."""

_DIGITS: Final = 20
"""The maximum length of a quoted number, in characters."""

_JSON: Final = {"content-type": "application/json"}

_MOST_SHOWN: Final = 600
"""The maximum length of a quoted error body, in characters."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An API's response: its status, headers keyed by lowercase name, body, and URL."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str

    @property
    def media(self) -> str:
        """The media type without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def text(self) -> str:
        """The body, decoded with the charset of its media type."""
        _, _, charset = self.headers.get("content-type", "").lower().partition("charset=")
        name = charset.partition(";")[0].strip(" \"'") or "utf-8"
        try:
            return self.body.decode(name, "replace")
        except (LookupError, ValueError):  # an unknown codec, a binary codec, or a codec that lacks "replace"
            return self.body.decode("utf-8", "replace")

    @property
    def is_json(self) -> bool:
        """True if the media type is JSON."""
        return self.media == "application/json" or self.media.endswith("+json")


def conceal(answer: Answer, secrets: Sequence[str]) -> Answer:
    """Remove our credentials from a response; some APIs echo the request verbatim, in JSON, or in a URL.

    Args:
        answer: The response.
        secrets: The secrets; very short ones are not redacted.
    """
    if answer.media.startswith(("image/", "audio/", "video/")):
        return answer
    body, forms = answer.body, _forms(secrets)
    for form in forms:
        body = body.replace(form.encode(), REDACTED.encode())
    # JSON can escape any character of a secret.
    if answer.is_json and b"\\u" in body:
        with suppress(ValueError, RecursionError):  # the body is not JSON
            value = json.loads(body)
            if (without := _redact(value, forms)) != value:
                body = json.dumps(without, ensure_ascii=False).encode("utf-8", "replace")
    return Answer(answer.status, answer.headers, body, answer.url)


def conceal_text(text: str, secrets: Sequence[str]) -> str:
    """Remove our credentials from response text, which can be JSON."""
    return conceal(Answer(0, _JSON, text.encode("utf-8", "replace"), ""), secrets).text


def holds_secret(text: str, secrets: Sequence[str]) -> bool:
    """Return whether text contains one of our credentials in any encoding."""
    return any(form in text for form in _forms(secrets))


def _forms(secrets: Sequence[str]) -> list[str]:
    """Return the encodings in which an API can echo the secrets, longest first."""
    forms: set[str] = set()
    for secret in secrets:
        if len(secret) >= _SHORTEST:
            escaped = {json.dumps(secret, ensure_ascii=is_ascii)[1:-1] for is_ascii in (True, False)}
            forms |= {secret, *escaped, *(each.replace("/", "\\/") for each in escaped)}
            forms |= {quote(secret, ""), quote_plus(secret)}
    return sorted(forms, key=len, reverse=True)


def _redact(value: Any, forms: Sequence[str]) -> Any:
    if isinstance(value, str):
        for form in forms:
            value = value.replace(form, REDACTED)
        return value
    if isinstance(value, dict):
        return {_redact(name, forms): _redact(each, forms) for name, each in value.items()}
    return [_redact(each, forms) for each in value] if isinstance(value, list) else value


class SchemaMismatch(ToolError):
    """The response does not match the tool's `outputSchema`; without a schema, the result is `instead`."""

    def __init__(self, message: str, instead: Content | None = None) -> None:
        super().__init__(message)
        self.instead = instead


def describe_redirect(target: str, secrets: Sequence[str]) -> SchemaMismatch:
    """Return the error for a redirect to another host, with a link unless the URL contains a secret."""
    host = urlsplit(target).hostname
    message = f"The API's redirect to another host, {host}, was not followed."
    held = any(secret in target or secret in unquote(target) for secret in secrets if secret)
    if held or urlsplit(target).scheme not in ("http", "https"):
        return SchemaMismatch(message)
    name = unquote(urlsplit(target).path.rpartition("/")[2]) or str(host)
    try:
        return SchemaMismatch(message, link(target, clean(name), description=clean(f"The redirect target at {host}.")))
    except ValueError:
        return SchemaMismatch(message)


def make_result(
    answer: Answer, tool: Tool, shape: Callable[[Any], Any] | None = None, secrets: Sequence[str] = ()
) -> Any:
    """Return the response's JSON if the tool has an `outputSchema`, else the response as content.

    Args:
        answer: The response.
        tool: The tool.
        shape: Converts the JSON to the tool's result.
        secrets: The secrets to redact.

    Raises:
        SchemaMismatch: The response is not JSON, or is not the object that the `outputSchema` requires.
    """
    if tool.output_name is None and (shape is None or not answer.is_json):
        return make_content(conceal(answer, secrets))
    value: Json = None if not answer.body.strip() else parse(answer)
    value = value if shape is None else shape(value)
    forms = _forms(secrets)
    if b"\\u" in answer.body or any(form.encode() in answer.body or _is_in_headers(form, answer) for form in forms):
        value = _redact(value, forms)
    if tool.output_name is None:
        return json.dumps(value, ensure_ascii=False)
    promised: Json = tool.definition["outputSchema"]
    is_object = isinstance(promised, dict) and promised.get("type") == "object"
    if is_object and not isinstance(value, dict) and not tool.is_lenient:
        raise SchemaMismatch(f"The API returned {format_status(answer.status)} without the required JSON object.")
    return value


def make_content(answer: Answer) -> Content:
    """Convert a response to content: text, an image, audio, or another file."""
    if not answer.body:
        return f"{format_status(answer.status)}{_headers(answer)}"
    if answer.media.startswith(("image/", "audio/")):
        block = image if answer.media.startswith("image/") else audio
        return block(answer.body, answer.media)
    if answer.is_json or _is_text(answer):
        return answer.text
    return embedded(_strip_url(answer.url), blob=answer.body, mime_type=_media(answer.media))


def parse(answer: Answer) -> Any:
    """Parse a response's JSON.

    Raises:
        SchemaMismatch: The response is not JSON.
    """
    try:
        return json.loads(answer.body, parse_constant=refuse_constant, parse_float=_number)
    except _TooLargeError as error:
        raise SchemaMismatch(
            f"The API returned {format_status(answer.status)} with the number {error}, which is too large."
        ) from None
    except (ValueError, RecursionError):
        kind = answer.media or "a body"
        raise SchemaMismatch(f"The API returned {format_status(answer.status)} with {kind} that is not JSON.") from None


def make_failure(
    answer: Answer, shown: str, secrets: Sequence[str], lacking: Sequence[str], kind: type[ToolError]
) -> ToolError:
    """Return the error for an unsuccessful response.

    Args:
        answer: The response.
        shown: The call's method and URL template.
        secrets: The secrets to redact.
        lacking: The unset credential variables.
        kind: The error class.
    """
    text = f"The API returned {format_status(answer.status)} for {shown}"
    if answer.status in (401, 403) and lacking:
        text += f"; no credentials were sent, because the server's environment lacks {' and '.join(lacking)}"
    after = parse_retry_after(answer.headers.get("retry-after"))
    if after is not None:
        text += f"; try again in {math.ceil(after)} seconds"
    detail = "" if answer.media.startswith(("image/", "audio/", "video/")) else _excerpt(answer, secrets)
    return kind(f"{text}: {detail}" if detail else f"{text}.")


def format_status(status: int) -> str:
    """Format a status with its reason phrase, such as `404 Not Found`."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _excerpt(answer: Answer, secrets: Sequence[str]) -> str:
    text = answer.text
    if answer.is_json:
        try:
            text = json.dumps(json.loads(answer.body), ensure_ascii=False)
        except (ValueError, RecursionError):
            text = answer.text
    text = " ".join(clean(mask(text, secrets)).split())
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def _is_in_headers(form: str, answer: Answer) -> bool:
    return any(form in value for value in answer.headers.values())


def _is_text(answer: Answer) -> bool:
    if is_text(answer.media):
        return True
    if answer.media or b"\0" in answer.body:
        return False
    try:
        answer.body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _headers(answer: Answer) -> str:
    """Format the headers that an error shows if the response has no body."""
    return "".join(f"\n{name}: {answer.headers[name]}" for name in _SHOWN_HEADERS if name in answer.headers)


_SHOWN_HEADERS: Final = ("allow", "content-length", "content-type", "etag", "last-modified", "location")


def _strip_url(url: str) -> str:
    """Return a URL without its query and user information."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _media(media: str) -> str:
    try:
        return check_mime_type(media)
    except ValueError:
        return "application/octet-stream"


class _TooLargeError(Exception):
    """A number exceeds the range of a double."""


def _number(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _TooLargeError(text if len(text) <= _DIGITS else f"{text[:_DIGITS]}…")
    return number
