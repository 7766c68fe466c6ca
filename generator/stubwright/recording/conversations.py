"""Parses the requests and responses in a recording."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from stubwright.importers.server_listing import ServerListing
from stubwright_runtime.mcp.revisions import REVISIONS
from stubwright_runtime.mcp.vocabulary import (
    IDEMPOTENCY_KEY,
    PROTOCOL_VERSION_META_KEY,
    SECTIONS,
    SERVER_INFO_META_KEY,
    Section,
)

if TYPE_CHECKING:
    from stubwright.recording.lines import Line

CALLS: Final[Mapping[str, tuple[str, str]]] = {
    "tools/call": ("tools", "name"),
    "resources/read": ("resources", "uri"),
    "prompts/get": ("prompts", "name"),
    "completion/complete": ("completions", "ref"),
}
"""The replayed methods, each with its capability and the parameter that identifies its object."""

_LISTS: Final[Mapping[str, Section]] = {section.method: section for section in SECTIONS}
_NOTIFICATIONS: Final = ("notifications/progress", "notifications/message")
_TASK: Final = "task"


@dataclass(frozen=True, slots=True)
class Answer:
    """The response to a call.

    Attributes:
        response: The `result` or `error` of the message.
        notifications: The methods and parameters of the preceding notifications.
    """

    response: Mapping[str, Any]
    notifications: tuple[tuple[str, Mapping[str, Any]], ...] = ()

    @property
    def asks(self) -> bool:
        """True if it requests input from the client, which then repeats the call (MCP 2026-07-28)."""
        return _dict(self.response.get("result")).get("resultType") == "input_required"


@dataclass(frozen=True, slots=True)
class Call:
    """A call with its responses, in order.

    Attributes:
        method: The MCP method.
        params: The parameters, from `select_params`.
        line: The line number of its first occurrence.
    """

    method: str
    params: Mapping[str, Any]
    line: int
    answers: list[Answer] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Conversation:
    """A recording's content.

    Attributes:
        listing: The server's lists.
        calls: The distinct calls.
        omitted: The number of responses that cannot be replayed because they started a task.
    """

    listing: ServerListing
    calls: tuple[Call, ...]
    omitted: int


@dataclass(slots=True)
class _PendingRequest:
    method: str
    params: Mapping[str, Any]
    line: int
    notifications: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)

    @property
    def progress_token(self) -> Any:
        meta = self.params.get("_meta")
        return meta.get("progressToken") if isinstance(meta, dict) else None


@dataclass(slots=True)
class _RecordingState:
    """The part of a recording that has been read so far."""

    open: dict[str, _PendingRequest] = field(default_factory=dict)
    calls: dict[str, Call] = field(default_factory=dict)
    info: dict[str, Any] = field(default_factory=dict)
    capabilities: dict[str, Any] = field(default_factory=dict)
    sections: dict[str, list[Any]] = field(default_factory=dict)
    revision: str = ""
    omitted: int = 0

    def add(self, line: Line, message: Mapping[str, Any]) -> None:
        if line.is_from_client:
            if "id" in message and isinstance(message.get("method"), str):
                self.open[_name(line, message["id"])] = _PendingRequest(
                    message["method"], _dict(message.get("params")), line.number
                )
        elif "method" not in message and "id" in message:
            request = self._close(line, message["id"])
            if request is not None:
                self._answer(request, message)
        elif message.get("method") in _NOTIFICATIONS:
            self._record(line, str(message["method"]), _dict(message.get("params")))

    def _close(self, line: Line, identifier: Any) -> _PendingRequest | None:
        """Pop a response's request. The request is in another exchange if the response's stream was resumed."""
        name = _name(line, identifier)
        if name not in self.open and line.exchange is not None:
            for key in self.open:
                run, _, other = json.loads(key)
                if run == line.run and other == identifier:
                    name = key
        return self.open.pop(name, None)

    def _record(self, line: Line, method: str, params: Mapping[str, Any]) -> None:
        """Store a notification for the next response. Log messages are assigned to the last request."""
        here = [request for key, request in self.open.items() if json.loads(key)[:2] == [line.run, line.exchange]]
        if method == "notifications/progress":
            token = params.get("progressToken")
            here = [request for request in here if token is not None and request.progress_token == token]
        if here:
            here[-1].notifications.append((method, params))

    def _answer(self, request: _PendingRequest, message: Mapping[str, Any]) -> None:
        response = {key: message[key] for key in ("result", "error") if isinstance(message.get(key), dict)}
        result = _dict(message.get("result"))
        self._learn(request, result)
        if request.method in _LISTS:
            self._list(_LISTS[request.method], request, result)
        elif request.method in CALLS and response:
            if _TASK in request.params or result.get("resultType") == _TASK:
                self.omitted += 1
                return
            params = select_params(request.params)
            call = self.calls.setdefault(make_key(request.method, params), Call(request.method, params, request.line))
            call.answers.append(Answer(response, tuple(request.notifications)))

    def _learn(self, request: _PendingRequest, result: Mapping[str, Any]) -> None:
        info = result.get("serverInfo", _dict(result.get("_meta")).get(SERVER_INFO_META_KEY))
        self.info |= _dict(info)
        if request.method in ("initialize", "server/discover"):
            self.capabilities |= _dict(result.get("capabilities"))
            if isinstance(result.get("instructions"), str):
                self.info["instructions"] = result["instructions"]
        spoken = result.get("protocolVersion") or _dict(request.params.get("_meta")).get(PROTOCOL_VERSION_META_KEY)
        if isinstance(spoken, str):
            self.revision = spoken

    def _list(self, section: Section, request: _PendingRequest, result: Mapping[str, Any]) -> None:
        entries = result.get(section.name)
        if isinstance(entries, list):
            before = self.sections.get(section.name, []) if "cursor" in request.params else []
            self.sections[section.name] = [*before, *entries]


def read(lines: Iterable[Line]) -> Conversation:
    """Return the requests and responses. Raises RecordingError if `lines` does."""
    reading = _RecordingState()
    for line in lines:
        for message in line.messages:
            reading.add(line, message)
    calls = tuple(reading.calls.values())
    capabilities = {**reading.capabilities, **{CALLS[call.method][0]: {} for call in calls}}
    sections = dict(reading.sections)
    sections["tools"] = [*map(_drop_execution, sections.get("tools", ())), *_find_unlisted(sections, calls)]
    listing = ServerListing(reading.revision or REVISIONS[-1], reading.info, capabilities, sections)
    return Conversation(listing, calls, reading.omitted)


def select_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that identify a call, without the caller's metadata and the server's state."""
    chosen: dict[str, Any] = normalize(
        {key: value for key, value in params.items() if key not in ("_meta", "requestState", IDEMPOTENCY_KEY)}
    )
    if chosen.get("arguments") == {}:  # equivalent to no arguments
        del chosen["arguments"]
    return chosen


def make_key(method: str, params: Mapping[str, Any]) -> str:
    """Return a string that is equal for equal calls."""
    return json.dumps([method, params], sort_keys=True)


def normalize(value: Any) -> Any:
    """Return a JSON value in which equal numbers are written the same way (JSON Schema 2020-12, 4.2.2)."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [normalize(item) for item in value]
    if isinstance(value, dict):
        return {key: normalize(item) for key, item in value.items()}
    return value


def _find_unlisted(sections: Mapping[str, Sequence[Any]], calls: Iterable[Call]) -> Iterator[dict[str, Any]]:
    listed = {tool.get("name") for tool in sections.get("tools", ()) if isinstance(tool, dict)}
    for call in calls:
        name = call.params.get("name")
        works = any(not _dict(each.response.get("result")).get("isError") for each in call.answers)
        if call.method == "tools/call" and name not in listed and works and "result" in call.answers[0].response:
            listed.add(name)
            yield {"name": name, "inputSchema": {"type": "object"}}


def _drop_execution(tool: Any) -> Any:
    return {key: value for key, value in tool.items() if key != "execution"} if isinstance(tool, dict) else tool


def _name(line: Line, identifier: Any) -> str:
    return json.dumps([line.run, line.exchange, identifier])


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
