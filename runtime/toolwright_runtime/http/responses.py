"""What an API answers, as a tool's result.

Takes a response that was read whole; gives a value for a handler to return, or raises the error that the caller is
told. Of an error's body the caller gets the start, without what could harm a reader and without credentials.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from ..errors import ToolError
from ..observability.redaction import mask
from ..package import Tool
from ..server.handlers.content import Content, audio, embedded, image, link
from ..values.json import Json
from ..values.sanitizing import check_mime_type, clean

_MOST_SHOWN: Final = 600
"""Characters of an error's body that the caller is told."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A response: its status, its headers by their names in lower case, its body, and the URL that it came from."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str

    @property
    def media(self) -> str:
        """The media type, without its parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def text(self) -> str:
        """The body as text, in the charset that it says."""
        _, _, charset = self.headers.get("content-type", "").lower().partition("charset=")
        name = charset.partition(";")[0].strip(" \"'") or "utf-8"
        try:
            return self.body.decode(name, "replace")
        except (LookupError, ValueError):  # no such charset, or one that is a compression or knows no "replace"
            return self.body.decode("utf-8", "replace")

    @property
    def is_json(self) -> bool:
        """Whether it says that it is JSON."""
        return self.media == "application/json" or self.media.endswith("+json")


class Deviation(ToolError):
    """The answer is not the JSON that the tool promises. `instead` is what can be given of it otherwise."""

    def __init__(self, message: str, instead: Content | None = None) -> None:
        """Say what is wrong."""
        super().__init__(message)
        self.instead = instead


def elsewhere(target: str, secrets: Sequence[str]) -> Deviation:
    """What is told of a redirect to another host, which nobody follows: a link, where it holds nothing secret."""
    host = urlsplit(target).hostname
    message = f"The API redirects to another host, {host}, which is not followed."
    held = any(secret in target or secret in unquote(target) for secret in secrets if secret)
    if held or urlsplit(target).scheme not in ("http", "https"):
        return Deviation(message)
    name = unquote(urlsplit(target).path.rpartition("/")[2]) or str(host)
    try:
        return Deviation(message, link(target, clean(name), description=clean(f"What {host} has for this call.")))
    except ValueError:
        return Deviation(message)


def result(answer: Answer, tool: Tool, shape: Callable[[Any], Any] | None = None) -> Any:
    """What the tool gives: the JSON of the answer where the tool has an `outputSchema`, else the answer as content.

    Args:
        answer: The answer.
        tool: The tool.
        shape: Makes of the JSON what the tool gives, where that is something else.

    Raises:
        Deviation: The answer is not the JSON that the tool promises.
    """
    if tool.output_name is None and (shape is None or not answer.is_json):
        return content(answer)
    value: Json = None if not answer.body.strip() else parsed(answer)
    value = value if shape is None else shape(value)
    if tool.output_name is None:
        return json.dumps(value, ensure_ascii=False)
    promised: Json = tool.definition["outputSchema"]
    is_object = isinstance(promised, dict) and promised.get("type") == "object"
    if is_object and not isinstance(value, dict) and not tool.is_lenient:
        raise Deviation(f"The API answered {phrase(answer.status)} without the object that it promises.")
    return value


def content(answer: Answer) -> Content:
    """The answer as content: text, an image, a sound, or another file."""
    if not answer.body:
        return f"{phrase(answer.status)}{_headers(answer)}"
    if answer.media.startswith(("image/", "audio/")):
        block = image if answer.media.startswith("image/") else audio
        return block(answer.body, answer.media)
    if answer.is_json or answer.media.startswith("text/") or _is_text(answer):
        return answer.text
    return embedded(_where(answer.url), blob=answer.body, mime_type=_media(answer.media))


def parsed(answer: Answer) -> Any:
    """The JSON of an answer.

    Raises:
        Deviation: It is none.
    """
    try:
        return json.loads(answer.body, parse_constant=_refuse)
    except (ValueError, RecursionError):
        what = answer.media or "something"
        raise Deviation(f"The API answered {phrase(answer.status)} with {what} that is not JSON.") from None


def failure(answer: Answer, shown: str, secrets: Sequence[str], lacking: Sequence[str]) -> ToolError:
    """What the caller is told of an answer that says that the call failed.

    Args:
        answer: The answer.
        shown: What was called, without any value.
        secrets: Texts that nobody may read.
        lacking: Variables that would have said who the server is, and are not set.
    """
    text = f"The API answered {phrase(answer.status)} to {shown}"
    if answer.status in (401, 403) and lacking:
        text += f"; no credentials were sent, since the server's environment lacks {' and '.join(lacking)}"
    after = answer.headers.get("retry-after", "").strip()
    if after.isdecimal() and len(after) < 9:
        text += f"; try again in {after} seconds"
    detail = "" if answer.media.startswith(("image/", "audio/", "video/")) else _short(answer, secrets)
    return ToolError(f"{text}: {detail}" if detail else f"{text}.")


def phrase(status: int) -> str:
    """A status in words: `404 Not Found`."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _short(answer: Answer, secrets: Sequence[str]) -> str:
    text = answer.text
    if answer.is_json:
        try:
            text = json.dumps(json.loads(answer.body), ensure_ascii=False)
        except (ValueError, RecursionError):
            text = answer.text
    text = " ".join(clean(mask(text, secrets)).split())
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def _is_text(answer: Answer) -> bool:
    if answer.media.endswith("+xml") or answer.media in ("application/xml", "application/javascript", _FORM):
        return True
    if answer.media not in ("", "application/octet-stream") or b"\0" in answer.body:
        return False
    try:
        answer.body.decode()
    except UnicodeDecodeError:
        return False
    return answer.media == ""


_FORM: Final = "application/x-www-form-urlencoded"


def _headers(answer: Answer) -> str:
    """The headers of an answer to HEAD or OPTIONS, which are all that it has."""
    shown_headers = {name: answer.headers[name] for name in _TOLD if name in answer.headers}
    return "".join(f"\n{name}: {value}" for name, value in shown_headers.items())


_TOLD: Final = ("allow", "content-length", "content-type", "etag", "last-modified", "location")


def _where(url: str) -> str:
    """A URL without what may be secret in it: its query, and whoever calls."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _media(media: str) -> str:
    try:
        return check_mime_type(media)
    except ValueError:
        return "application/octet-stream"


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
