"""The package that a replay serves: a mock's package whose calls get responses from a recording."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from stubwright.mock import package as mock_package
from stubwright.recording import conversations, lines
from stubwright.recording.answers import Answers
from stubwright_runtime.mcp.downgrades import downgrade_result
from stubwright_runtime.mcp.errors import INTERNAL_ERROR, INVALID_PARAMS, ProtocolError
from stubwright_runtime.mcp.vocabulary import LOG_LEVELS, SERVER_INFO_META_KEY
from stubwright_runtime.state.nonces import make_nonce

if TYPE_CHECKING:
    from pathlib import Path

    from stubwright.recording.conversations import Answer
    from stubwright_runtime.server.core.feature import Feature, HandlerMethod, ServerContext
    from stubwright_runtime.server.core.request import Answer as AnswerRequest
    from stubwright_runtime.server.core.request import Request, Result

FILE: Final = "recording.jsonl"
"""The recording, next to the package's `manifest.json`."""

OPTIONS: Final = "replay.json"
"""The options file: the recording's name, and whether missing responses are mocked."""

_Feature = TypeVar("_Feature")
_CACHE: Final[Mapping[str, Any]] = {"ttlMs": 0, "cacheScope": "private"}
"""The fields that a resource result requires in MCP 2026-07-28 and later (MCP, schema, `CacheableResult`)."""


class ReplayPackage(mock_package.MockPackage):
    """A package whose server responds from a recording."""

    answers: Answers
    mocks: bool

    def replace_features(self, features: Sequence[_Feature]) -> Sequence[_Feature]:
        """Wrap each feature so that it searches the recording first."""
        return [cast("_Feature", _ReplayFeature(cast("Feature", feature), self)) for feature in features]


@dataclass(frozen=True, slots=True)
class _ReplayFeature:
    """A mock feature whose calls get responses from the recording."""

    part: Feature
    package: ReplayPackage

    def list_required_methods(self) -> list[HandlerMethod]:
        return self.part.list_required_methods()

    def make_listings(self) -> Mapping[str, Mapping[str, dict[str, Any]]]:
        return self.part.make_listings()

    def list_handlers(self, server: ServerContext) -> Mapping[str, AnswerRequest]:
        return {
            method: self._replay(answer) if method in conversations.CALLS else answer
            for method, answer in self.part.list_handlers(server).items()
        }

    def _replay(self, mocked: AnswerRequest) -> AnswerRequest:
        async def answer(request: Request) -> Result:
            recorded = self.package.answers.find(request.method, request.params)
            if recorded is not None:
                return await _give(recorded, request, self.package)
            if self.package.mocks:
                return await mocked(request)
            raise ProtocolError(INVALID_PARAMS, self.package.answers.explain(request.method, request.params))

        return answer


async def _give(answer: Answer, request: Request, package: ReplayPackage) -> dict[str, Any]:
    """Return a recorded result in the caller's revision, after sending the notifications that preceded the result.

    Raises:
        ProtocolError: The response is an error or requests input that the revision does not support.
    """
    for method, params in answer.notifications:
        await _notify(method, params, request)
    is_stateless = request.revision.has("stateless")
    if answer.asks:
        if is_stateless:
            return _ask_again(answer.response["result"])
        recorded = package.answers.find_after_questions(request.method, request.params)
        if recorded is None:
            raise ProtocolError(
                INVALID_PARAMS, f"the recorded response asks a question, which {request.revision.date} does not support"
            )
        return await _give(recorded, request, package)
    if "error" in answer.response:
        error = answer.response["error"]
        raise ProtocolError(error.get("code", INTERNAL_ERROR), str(error.get("message", "")), error.get("data"))
    result = _strip_stamp(answer.response["result"])
    if request.method == "resources/read" and is_stateless:
        return {**_CACHE, **result}
    if request.method == "tools/call":
        tool = package.tools.get(request.params["name"])
        return downgrade_result(result, {} if tool is None else tool.definition, request.revision)
    return result


async def _notify(method: str, params: Mapping[str, Any], request: Request) -> None:
    """Send a notification that precedes a response if the caller accepts the notification."""
    if method == "notifications/progress" and isinstance(params.get("progress"), int | float):
        await request.channel.send_progress(params["progress"], params.get("total"), params.get("message"))
    elif method == "notifications/message" and params.get("level") in LOG_LEVELS:
        await request.channel.log(params["level"], params.get("data"), params.get("logger"))


def _ask_again(recorded: Mapping[str, Any]) -> dict[str, Any]:
    """Return a question with this server's state, which the client returns with its answer."""
    state = {"mark": make_nonce(), "asked": [*(recorded.get("inputRequests") or {})]}
    return {**recorded, "requestState": json.dumps(state)}


def _strip_stamp(recorded: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result without the recorded server's description, since this server adds its own."""
    result = {key: value for key, value in recorded.items() if key != "resultType"}
    meta = result.get("_meta")
    if isinstance(meta, dict) and SERVER_INFO_META_KEY in meta:
        rest = {key: value for key, value in meta.items() if key != SERVER_INFO_META_KEY}
        result = {**result, "_meta": rest} if rest else {key: value for key, value in result.items() if key != "_meta"}
    return result


def load(name: str, folder: Path) -> tuple[mock_package.MockPackage, object]:
    """Return the package with this name, and a mock's handlers.

    Args:
        name: The name under which the folder is imported.
        folder: The folder with its files.
    """
    package, handlers = mock_package.load_as(ReplayPackage, name, folder)
    options: Mapping[str, Any] = json.loads((folder / OPTIONS).read_text("utf-8"))
    path: str = options["path"]
    conversation = conversations.read(lines.parse(path, (folder / FILE).read_bytes()))
    package.answers, package.mocks = Answers(path, conversation.calls), options["mocks"]
    return package, handlers
