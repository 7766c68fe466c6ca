"""Builds a call's HTTP request from the manifest's `http`.

Arguments are encoded so that they cannot change the path, add parameters or headers, or select another host.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field
from email.message import Message
from functools import partial
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from ..errors import ToolError
from ..package import is_exchange
from ..values import units
from ..values.json import Json, is_list, is_mapping
from .media import TEXT, Content, find_contents, is_text
from .styles import encode, encode_but_reserved, format_pairs, format_plain, format_segment, refuse_escaping
from .templates import BODIED, HOLE, SAFE, list_used

# Tabs are the only control characters allowed in headers (RFC 9110, 5.5).
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_FORM: Final = "application/x-www-form-urlencoded"
_MULTIPART: Final = "multipart/form-data"
_ABSENT: Final = object()
_ENV: Final = ("env", "usernameEnv", "passwordEnv", "clientIdEnv", "clientSecretEnv", "refreshTokenEnv")

Part = tuple[str, tuple[str | None, bytes, str]]
"""A form part: its name, and its file name (or `None`), content and media type."""

ReadEvents = Callable[[AsyncIterator[bytes], Sequence[str]], Awaitable[tuple[str, bytes]]]
Constant = str | Mapping[str, str]
"""A constant string, or an environment variable with a default."""


@dataclass(frozen=True, slots=True)
class Api:
    """An API's settings. Times are in seconds, sizes in bytes."""

    base: str
    base_env: str | None
    auth: Mapping[str, Mapping[str, Any]]
    security: Sequence[Sequence[str]]
    headers: Mapping[str, Constant]
    query: Mapping[str, Constant]
    timeout: float
    retries: int
    most: int

    @classmethod
    def from_entry(cls, settings: Mapping[str, Any], http: Mapping[str, Any] | None = None) -> Api:
        """Create an API from its entry under `apis`, with the timeouts and sizes from a tool's `http`.

        The entry is empty if the tool's URL is absolute.
        """
        settings = {**settings, **{key: http[key] for key in ("timeout", "maxResponseBytes") if http and key in http}}
        return cls(
            base=settings.get("baseUrl", ""),
            base_env=settings.get("baseUrlEnv"),
            auth=settings.get("auth") or {},
            security=settings.get("security") or (),
            headers=settings.get("headers") or {},
            query=settings.get("query") or {},
            timeout=units.parse_duration(settings.get("timeout", "30s")),
            retries=settings.get("retries", 2),
            most=units.parse_size(settings.get("maxResponseBytes", "4MiB")),
        )


@dataclass(frozen=True, slots=True)
class OutgoingRequest:
    """A request to an API, and the `secrets` that it contains."""

    method: str
    url: str = field(repr=False)
    headers: Sequence[tuple[str, bytes]] = field(repr=False)
    content: bytes | None = field(repr=False)
    parts: Sequence[Part] = field(repr=False)
    secrets: Sequence[str] = field(repr=False)
    lacking: Sequence[str] = ()
    """Unset credential variables, if the request has no credentials."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """The environment used to build the request."""
    read_events: ReadEvents | None = field(default=None, repr=False)
    """Reads an event stream and returns the media type and body."""


@dataclass(slots=True)
class _RequestBuilder:
    query: list[str] = field(default_factory=list[str])
    headers: list[tuple[str, bytes]] = field(default_factory=list[tuple[str, bytes]])
    cookies: list[str] = field(default_factory=list[str])
    secrets: list[str] = field(default_factory=list[str])
    lacking: list[str] = field(default_factory=list[str])


class Binding:
    """A tool's `http`, and the API that the tool calls."""

    def __init__(self, http: Mapping[str, Any], api: Api, schema: Mapping[str, Any]) -> None:
        """Parse a tool's `http`, once for all requests.

        Args:
            http: The tool's `http`.
            api: The API.
            schema: The tool's `inputSchema`.
        """
        self.api = api
        self.method: str = http.get("method", "GET")
        self._http = http
        self._path: Mapping[str, Mapping[str, Any]] = http.get("path") or {}
        self._properties: Mapping[str, Any] = schema.get("properties") or {}
        self._used = frozenset(list_used(http))
        page: Mapping[str, Any] = http.get("page") or {}
        if page:  # `cursor` replaces the API's own argument for the position
            own: dict[str, Any] = {page["argument"]: {}} if "argument" in page else {}
            self._properties = {
                **{name: schema for name, schema in self._properties.items() if name != "cursor"},
                **own,
            }
        body: Json = http.get("body")
        only = HOLE.fullmatch(body) if isinstance(body, str) else None
        self._contents = find_contents(schema)
        self._body_content = self._contents.get(only[1]) if only is not None else TEXT
        if only is not None and _read_kind(http.get("contentType", "")) == _MULTIPART:
            self._contents = find_contents(schema, only[1])
        self._users = frozenset(
            auth[key] for auth in api.auth.values() for key in ("usernameEnv", "clientIdEnv") if key in auth
        )
        has_rest = "body" not in http and any(name not in self._used for name in self._properties)
        self._sends_rest = has_rest and self.method in BODIED

    def describe_lost(self, values: Mapping[str, Any]) -> str:
        """Return the quoted names of the arguments that the request cannot contain."""
        known = self._used | self._properties.keys() | ({"cursor"} if "page" in self._http else set[str]())
        return "" if self._sends_rest else ", ".join(f"`{name}`" for name in values if name not in known)

    @property
    def idempotency_header(self) -> str | None:
        """The idempotency header, or `None` if the manifest sets that header or the method is safe."""
        declared: str | None = self._http.get("idempotencyHeader")
        if declared is None and self.method in SAFE:
            return None
        name = declared or "Idempotency-Key"
        names = {each.lower() for each in (*(self._http.get("headers") or {}), *self.api.headers)}
        return None if name.lower() in names else name

    @property
    def shown(self) -> str:
        """The method and the URL template from the manifest."""
        return f"{self.method} {self._http['url']}"

    def make_request(
        self, values: Mapping[str, Any], environment: Mapping[str, str], schemes: Sequence[str] | None = None
    ) -> OutgoingRequest:
        """Build the request for these arguments.

        Args:
            values: The arguments.
            environment: The variables with the API's base URL and credentials.
            schemes: The authentication schemes to use; by default the first set whose credentials are available.

        Raises:
            ToolError: An argument is invalid in the part of the request that it fills, or the API's base URL is not
                set.
        """
        making = _RequestBuilder()
        url = self._base(environment) + self._fill_url(values)
        for name, spec in self._section("query"):
            making.query += _pairs(name, spec, values, encode_but_reserved if _is_reserved(spec) else encode)
        for name, constant in self.api.query.items():
            if name not in (self._http.get("query") or {}):
                making.query.append(f"{encode(name)}={encode(_constant(name, constant, environment))}")
        for name, spec in self._section("headers"):
            text = _header(spec, values)
            if text is not None:
                making.headers.append((name, _check_header(name, text)))
        own = {name.lower() for name, _ in self._section("headers")} | ({"accept"} & self._http.keys())
        for name, constant in self.api.headers.items():
            if name.lower() not in own:
                making.headers.append((name, _check_header(name, _constant(name, constant, environment))))
        for name, spec in self._section("cookies"):
            is_escaped = isinstance(spec, Mapping) and spec.get("style") == "cookie"
            making.cookies += _pairs(name, spec, values, refuse_escaping if is_escaped else encode)
        if "accept" in self._http or not any(name.lower() == "accept" for name in self.api.headers):
            making.headers.append(("Accept", self._http.get("accept", "application/json").encode()))
        self._authenticate(self.list_credentials(environment)[0] if schemes is None else schemes, making, environment)
        content, parts = self._body(values, making)
        if making.cookies:
            making.headers.append(("Cookie", "; ".join(making.cookies).encode()))
        if making.query:
            url += ("&" if "?" in url else "?") + "&".join(making.query)
        return OutgoingRequest(
            self.method, url, making.headers, content, parts, making.secrets, making.lacking, environment
        )

    def _section(self, name: str) -> Iterable[tuple[str, Any]]:
        section: Mapping[str, Any] = self._http.get(name) or {}
        return section.items()

    def _base(self, environment: Mapping[str, str]) -> str:
        api = self.api
        base = (environment.get(api.base_env) if api.base_env else None) or api.base
        if not base and api.base_env:
            raise ToolError(f"The API's base URL is missing: {api.base_env} is not set in the server's environment.")
        if base:
            try:
                parts = urlsplit(base)
                is_base = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
                is_base = is_base and not parts.query and not parts.fragment
            except ValueError:
                is_base = False
            if not is_base:
                raise ToolError(
                    f"{api.base_env} in the server's environment is not a base URL, such as https://example.com"
                )
        return base.rstrip("/")

    def _fill_url(self, values: Mapping[str, Any]) -> str:
        def find_value(match: re.Match[str]) -> str:
            if match[1] is None:
                return match[0][0]
            name = match[1]
            if values.get(name) is None:
                raise ToolError(f"`{name}` is part of the URL and cannot be omitted.")
            spec = self._path.get(name, {})
            given = _json(values[name]) if "contentType" in spec else values[name]
            _refuse_steps(name, given)
            text = format_segment(
                spec.get("style", "simple"), explode=spec.get("explode", False), name=name, value=given
            )
            if not text:
                raise ToolError(f"`{name}` is part of the URL and cannot be empty.")
            return text

        return HOLE.sub(find_value, self._http["url"])

    def list_credentials(self, environment: Mapping[str, str]) -> list[Sequence[str]]:
        """Return the scheme sets whose variables are set, in order, or one empty set if there are none."""
        alternatives: Sequence[Sequence[str]] = self._http.get("security", self.api.security)
        usable = [names for names in alternatives if all(self._is_set(name, environment) for name in names)]
        return usable or [()]

    def _is_set(self, name: str, environment: Mapping[str, str]) -> bool:
        """Return whether the environment has a scheme's credentials, or the token for its grant."""
        scheme = self.api.auth[name]
        if is_exchange(scheme):
            return True  # the request for a token reports a missing token
        if scheme["type"] == "oauth2" and environment.get(scheme["env"]):
            return True
        return all(environment.get(variable) for variable in self._variables([name]))

    def _authenticate(self, schemes: Sequence[str], making: _RequestBuilder, environment: Mapping[str, str]) -> None:
        for name in schemes:
            _authorize(self.api.auth[name], making, environment)
        alternatives: Sequence[Sequence[str]] = self._http.get("security", self.api.security)
        if not schemes:
            variables = [variable for names in alternatives for variable in self._variables(names)]
            making.lacking += [variable for variable in variables if not environment.get(variable)]
        # The API might also echo secrets from other calls.
        for variable in self._variables(self.api.auth, every=True):
            if environment.get(variable) and variable not in self._users:
                making.secrets.append(environment[variable])

    def _variables(self, names: Iterable[str], *, every: bool = False) -> list[str]:
        """Return the environment variables that the schemes require, or all their variables if `every` is true."""
        schemes = [self.api.auth[name] for name in names]
        return [
            variable
            for scheme in schemes
            for variable in (
                grant(scheme)
                if scheme["type"] == "oauth2" and not every
                else [scheme[key] for key in _ENV if key in scheme]
            )
        ]

    def _body(self, values: Mapping[str, Any], making: _RequestBuilder) -> tuple[bytes | None, Sequence[Part]]:
        if "body" in self._http:
            value = _substitute(self._http["body"], values)
        elif self._sends_rest:
            value = {name: item for name, item in values.items() if name not in self._used}
        else:
            return None, ()
        if value is _ABSENT:
            return None, ()
        media: str = self._http.get("contentType", "application/json")
        kind = _read_kind(media)
        if value is None and not _is_json(kind):
            return None, ()
        header = ("Content-Type", media.encode())
        if kind in (_MULTIPART, _FORM):
            if not is_mapping(value):
                raise ToolError(f"The API requires an object as `{media}`.")
            if kind == _MULTIPART:
                # The HTTP client adds the `Content-Type` header, with the boundary.
                return None, self._make_parts(value, values)
            making.headers.append(header)
            charset = _find_charset(media)
            if charset != "utf-8":
                for name, item in value.items():
                    _encode_text(name, name + format_plain(item), media)  # raises for a character outside the charset
            fields = [part for name, item in value.items() for part in self._field(name, item, charset)]
            return "&".join(fields).encode(), ()
        making.headers.append(header)
        if _is_json(kind):
            return _json(value).encode(), ()
        if is_text(kind) and not self._body_content.is_file:
            return _encode_text("body", format_plain(value), media), ()
        decoded = _decode_base64("body", value)
        return format_plain(value).encode() if self._body_content.is_base64 else decoded, ()

    def _field(self, name: str, value: Any, charset: str = "utf-8") -> list[str]:
        """Format a form field as `name=value` pairs. Objects without a style become JSON. Null is omitted."""
        if value is None:
            return []
        spec: Json = dict(self._section("fields")).get(name)
        if not isinstance(spec, dict):
            spec = {}
            value = _json(value) if isinstance(value, Mapping) else value
        elif "contentType" in spec:
            value = _json(value)
        style = spec.get("style", "form")
        encoding = partial(encode_but_reserved if _is_reserved(spec) else encode, charset=charset)
        explode = spec.get("explode", style == "form")
        return format_pairs(style, explode=explode, name=name, value=value, encode=encoding)

    def _part_detail(self, name: str, key: str, values: Mapping[str, Any]) -> str | None:
        """Return the file name or media type of a part in the manifest, or `None` if the part's argument is missing."""
        parts: Mapping[str, Mapping[str, str]] = self._http.get("parts") or {}
        spec = parts.get(name, {})
        text = _substitute(spec.get(key), values)
        if text is None or text is _ABSENT:
            return None
        return _check_header(f"Content-{'Disposition' if key == 'filename' else 'Type'}", format_plain(text)).decode()

    def _make_parts(self, value: Mapping[str, Any], values: Mapping[str, Any]) -> list[Part]:
        """Return the parts of a multipart form: one for each item of a list, and none for null."""
        parts: list[Part] = []
        item: Json
        for name, item in value.items():
            content = self._contents.get(name)
            if name in (self._http.get("fields") or {}):
                parts += [_make_pair(pair) for pair in self._field(name, item)]
                continue
            filename, given = (self._part_detail(name, key, values) for key in ("filename", "contentType"))
            is_json = given is not None and _is_json(_read_kind(given))
            is_list_in_one = is_json and (content.items or content.first) and not content.has_files_in_lists()
            several = [(item, content)]
            if isinstance(item, list) and not is_list_in_one:
                several = [*zip(item, content.list_items(len(item)), strict=True)]
            for each, content in several:
                if each is None:
                    continue
                is_text = each in content.texts if _is_base64(each) else content.may_be_text
                if content.is_file and not is_text and not isinstance(each, list | Mapping):
                    media = given or content.media
                    if media is None or _CONTROL.search(media):
                        media = "application/octet-stream"
                    decoded = _decode_base64(name, each)
                    if content.is_base64:  # the API expects text, not a file
                        parts.append((name, (filename, format_plain(each).encode(), media)))
                    else:
                        parts.append((name, (filename or name, decoded, media)))
                else:
                    plain = TEXT if content.is_file else content  # `media` describes the file
                    parts.append((name, (None, *_encode_part(name, each, given, plain))))
        return parts


def _make_pair(pair: str) -> Part:
    name, _, text = pair.partition("=")
    return unquote(name), (None, unquote(text).encode(), "text/plain")


def _encode_part(name: str, value: Any, given: str | None, content: Content) -> tuple[bytes, str]:
    """Return the content and media type of a part that is not a file."""
    is_plain = not isinstance(value, Mapping | list)
    media = given or content.media
    if media is None or _CONTROL.search(media):
        media = "text/plain" if is_plain else "application/json"
    is_text_of_media = given is None and isinstance(value, str)  # `contentMediaType` describes the string's content
    if not is_plain or (_is_json(_read_kind(media)) and not is_text_of_media):
        return _json(value).encode(), media
    return _encode_text(name, format_plain(value), media), media


def _encode_text(name: str, text: str, media: str) -> bytes:
    encoding = _find_charset(media)
    try:
        return text.encode(encoding)
    except (LookupError, UnicodeEncodeError):
        raise ToolError(f"`{name}` cannot be encoded in {encoding}, which the API requires.") from None


def _find_charset(media: str) -> str:
    message = Message()
    message["Content-Type"] = media
    return message.get_content_charset("utf-8")


def _read_kind(media: str) -> str:
    return media.partition(";")[0].strip().lower()


def _is_json(kind: str) -> bool:
    return kind == "application/json" or kind.endswith("+json")


def _constant(name: str, constant: Constant, environment: Mapping[str, str]) -> str:
    if isinstance(constant, str):
        return constant
    value = environment.get(constant["env"]) or constant.get("default")
    if value is None:
        variable = constant["env"]
        raise ToolError(f"The server has no value for {name}: its environment does not set {variable}.")
    return value


def grant(scheme: Mapping[str, Any]) -> list[str]:
    """Return an OAuth grant's required variables; the secret is optional for refresh tokens and exchanges."""
    if is_exchange(scheme):
        return [scheme[key] for key in ("clientIdEnv", "clientSecretEnv") if key in scheme]
    second = "refreshTokenEnv" if "refreshTokenEnv" in scheme else "clientSecretEnv"
    return [scheme["clientIdEnv"], scheme[second]]


def _is_reserved(spec: str | Mapping[str, Any]) -> bool:
    return isinstance(spec, Mapping) and spec.get("reserved") is True


def _value(spec: str | Mapping[str, Any], values: Mapping[str, Any]) -> Any:
    """Return the value of a `query`, `headers` or `cookies` entry, or `_ABSENT` if the entry's argument is missing."""
    value = _substitute(spec["value"] if isinstance(spec, Mapping) else spec, values)
    if value is not _ABSENT and isinstance(spec, Mapping) and "contentType" in spec:
        return _json(value)
    return _ABSENT if value is None else value


def _substitute(template: Json, values: Mapping[str, Any]) -> Any:
    """Substitute arguments into a template, without the entries whose arguments are missing.

    A template that consists of one argument becomes the argument's value, with its type.
    """
    if isinstance(template, dict):
        entries = {key: _substitute(value, values) for key, value in template.items()}
        return {key: value for key, value in entries.items() if value is not _ABSENT}
    if isinstance(template, list):
        return [value for value in (_substitute(item, values) for item in template) if value is not _ABSENT]
    if not isinstance(template, str):
        return template
    only = HOLE.fullmatch(template)
    if only is not None and only[1] is not None:
        return values.get(only[1], _ABSENT)
    if any(match[1] is not None and values.get(match[1]) is None for match in HOLE.finditer(template)):
        return _ABSENT
    return HOLE.sub(lambda match: match[0][0] if match[1] is None else format_plain(values[match[1]]), template)


def _pairs(name: str, spec: str | Mapping[str, Any], values: Mapping[str, Any], encode: Any) -> list[str]:
    value = _value(spec, values)
    if value is _ABSENT:
        return []
    style = spec.get("style", "form") if isinstance(spec, Mapping) else "form"
    explode = spec.get("explode", style in ("form", "cookie")) if isinstance(spec, Mapping) else True
    return format_pairs(style, explode=explode, name=name, value=value, encode=encode)


def _header(spec: str | Mapping[str, Any], values: Mapping[str, Any]) -> str | None:
    value = _value(spec, values)
    if value is _ABSENT:
        return None
    style = spec.get("style", "simple") if isinstance(spec, Mapping) else "simple"
    explode = isinstance(spec, Mapping) and spec.get("explode") is True
    return format_segment(style, explode=explode, name="", value=value, encode=str)


def _check_header(name: str, text: str) -> bytes:
    if _CONTROL.search(text):
        raise ToolError(f"The header {name} cannot contain line breaks or control characters.")
    return text.strip().encode("utf-8", "replace")


def _refuse_steps(name: str, value: Any) -> None:
    """Raise ToolError if a server could decode a value as a `.` or `..` path segment."""
    texts = value.values() if is_mapping(value) else value if is_list(value) else [value]
    for text in texts:
        # Some servers treat `\` as `/`, or split segments at `;`.
        if any(part in (".", "..") for part in re.split(r"[/\\;]", format_plain(text))):
            raise ToolError(f"`{name}` is part of the URL and cannot contain the path segment `.` or `..`.")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _decode_base64(name: str, value: Any) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise ToolError(f"`{name}` is not base64 (RFC 4648, section 4).") from None


def _is_base64(value: Any) -> bool:
    try:
        base64.b64decode(value, validate=True)
    except (binascii.Error, TypeError, ValueError):
        return False
    return True


def _authorize(scheme: Mapping[str, Any], making: _RequestBuilder, environment: Mapping[str, str]) -> None:
    if scheme["type"] == "basic":
        user, password = environment[scheme["usernameEnv"]], environment[scheme["passwordEnv"]]
        both = base64.b64encode(f"{user}:{password}".encode()).decode()
        making.secrets += [both, password]
        making.headers.append(("Authorization", f"Basic {both}".encode()))
        return
    secret = environment[scheme["env"]].strip()
    making.secrets.append(secret)
    if scheme["type"] in ("bearer", "oauth2"):
        making.headers.append(("Authorization", _safe(f"Bearer {secret}", scheme["env"])))
        return
    where = scheme.get("in", "header")
    if where == "header":
        making.headers.append((scheme["name"], _safe(secret, scheme["env"])))
        return
    # The API might echo the encoded form.
    making.secrets.append(encode(secret))
    part = f"{encode(scheme['name'])}={encode(secret)}"
    (making.query if where == "query" else making.cookies).append(part)


def _safe(text: str, variable: str) -> bytes:
    if _CONTROL.search(text):
        raise ToolError(f"{variable} in the server's environment contains control characters.")
    return text.encode()
