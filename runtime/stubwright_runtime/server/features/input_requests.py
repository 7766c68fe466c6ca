"""Requests to the client during a call: elicitation, sampling and roots.

In MCP 2025-11-25 and earlier, a question is a request to the client. In MCP 2026-07-28 and later, a question without an
answer ends the handler's run: the result is `input_required`, the client repeats the request with the answers, and the
handler runs again from the start (MCP 2026-07-28, basic/patterns, "Multi Round-Trip Requests").
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
import secrets
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ...errors import ToolError
from ...mcp.elicitation_answers import ElicitResult
from ...mcp.errors import (
    INVALID_REQUEST,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    URL_ELICITATION_REQUIRED,
    ProtocolError,
    refuse_state,
)
from ...mcp.problems import describe_problems
from ...observability.logs import log
from ...state.nonces import make_nonce
from ...state.store import StateLost
from ...values.json import copy_json, is_group
from ...values.modules import find_loaded
from ...values.nesting import DepthError, is_too_deep
from ...values.sanitizing import clean
from ..core.call_state import record_status
from ..core.outcomes import refuse
from ..execution.cancellation import is_cancelled
from ..protocol.messages import encode_json
from .url_elicitation import UrlQuestions, UrlRequired

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from pydantic import ValidationError

    from ...mcp.revisions import Feature, Revision
    from ...state.store import Store
    from ..core.request import Request, Result
    from .request_states import RequestStates

_T = TypeVar("_T")
_Error = TypeVar("_Error", bound=BaseException)

_MAX_ATTEMPTS: Final = 3
"""The maximum number of times to ask a question whose answer is invalid or missing."""

OWN_PREFIX: Final = "stubwright."
"""The prefix of the names of the server's own questions. Unsolicited answers to these are ignored."""

_ROUND_ITERATIONS: Final = 2
"""Event loop iterations to wait, so that concurrent questions become part of the same round."""

_SINCE: Final[Mapping[str, Feature]] = {
    "elicitation": "elicitation",
    "elicitation.form": "elicitation",
    "elicitation.url": "url_elicitation",
}
"""The revision feature that each capability requires. A client can declare a capability that its revision lacks."""


ELICIT: Final = "elicitation/create"
"""The method of elicitation requests."""

REFUSED: Final = "io.stubwright/refused"
"""The `_meta` key, in repeated sampling and roots requests, of the error in the client's last answer."""


class CallSuspension(BaseException):
    """Stops a handler until the next request contains the answer.

    The class derives from BaseException, so that handlers do not catch it.
    """


class MissingCapability(Exception):
    """The client lacks a capability that the request requires.

    Attributes:
        required: The capability in the format of `ClientCapabilities`: `{"elicitation": {"url": {}}}`.
    """

    def __init__(self, required: dict[str, Any], reason: str | None = None) -> None:
        super().__init__(reason or f"This request requires a client with the capability {_join(required)!r}")
        self.required = required


class UrlNotVisitedError(Exception):
    """The user did not visit the URL that the request requires."""


class InvalidAnswer(ToolError):
    """The client's answer is invalid, or the client responded with an error."""


class InputRequests:
    """One request's questions and answers, in all its rounds.

    Attributes:
        revision: The request's MCP revision.
    """

    revision: Revision

    def __init__(
        self,
        request: Request,
        state: Mapping[str, Any] | None = None,
        responses: Mapping[str, Any] | None = None,
    ) -> None:
        """Restore the state of the last round.

        Args:
            request: The request in progress; its time limit pauses while it waits for an answer.
            state: The decrypted `requestState`; `None` in the first round.
            responses: The request's `inputResponses`. Answers to questions that were not asked are ignored.
        """
        self._request = request
        self.revision = request.revision
        asked: Any = None if state is None else state["asked"]
        state = state or {}
        self._answers: dict[str, Any] = dict(state.get("answers", {}))
        self._done: dict[str, Any] = dict(state.get("done", {}))
        self._tries: dict[str, int] = dict(state.get("tries", {}))
        self._running: dict[str, asyncio.Future[Any]] = {}
        self._asked: dict[str, int] = {}
        self._pending: dict[str, dict[str, Any]] = {}
        self._missing: list[dict[str, Any]] = []
        # An unsolicited answer to one of the server's own questions could confirm a call that the user has not seen.
        for key, response in (responses or {}).items():
            if key in asked if asked is not None else not key.startswith(OWN_PREFIX):
                self._answers.setdefault(key, response)

    @property
    def pending(self) -> Mapping[str, dict[str, Any]]:
        """The unanswered questions of this round, as requests to the client, by name."""
        return self._pending

    @property
    def state(self) -> dict[str, dict[str, Any]]:
        """The state to restore in the next round: `answers`, results of `once` (`done`), and `tries`."""
        return {"answers": self._answers, "done": self._done, "tries": dict(self._tries)}

    def add_answer(self, key: str, answer: Mapping[str, Any]) -> None:
        """Store an answer that was already received, so that its question is not asked again."""
        self._answers.setdefault(key, answer)

    async def save(self) -> None:
        """Store the results of `once` in subclasses whose rounds can outlive the process.

        In this class, `state` contains the results.
        """

    @property
    def in_handshake_era(self) -> bool:
        """True in MCP 2025-11-25 and earlier, where a question is a request to the client."""
        return not self.revision.has("stateless")

    def can(self, capability: str) -> bool:
        """Return whether the client declared a capability, such as `elicitation.url`, that its revision supports."""
        feature = _SINCE.get(capability)
        if feature is not None and not self.revision.has(feature):
            return False
        capabilities = self._request.channel.capabilities or {}
        first, _, part = capability.partition(".")
        own = capabilities.get(first)
        if own is None or not part:
            return own is not None and (first != "elicitation" or self.can("elicitation.form"))
        # An empty object declares support for forms (MCP 2025-11-25, client/elicitation, "Capabilities").
        return part in own or (capability == "elicitation.form" and "url" not in own)

    async def ask(self, key: str, request: dict[str, Any], read: Callable[[Mapping[str, Any]], _T], needs: str) -> _T:
        """Ask the client a question and return the answer.

        Args:
            key: The question's name. The second question with the same name becomes `NAME.2`.
            request: The request to the client: its `method`, and optionally its `params`.
            read: Converts the answer to the returned value; raises `InvalidAnswer` if the answer is invalid.
            needs: The capability that the client must have, such as `elicitation.url`.

        Raises:
            MissingCapability: The client lacks the capability.
            DepthError: The question is nested too deeply.
            InvalidAnswer: Every answer was invalid or, in MCP 2025-11-25 and earlier, the client responded with an
                error.
        """
        if not self.can(needs):
            first, _, part = needs.partition(".")
            own: dict[str, Any] = {first: {part: {}} if part and part != "form" else {}}
            self._missing.append(own)
            for _ in range(_ROUND_ITERATIONS):
                await asyncio.sleep(0)
            missing, self._missing = self._missing, []
            raise MissingCapability(_merge(missing or [own]))
        if is_too_deep(request):
            raise DepthError("the question")
        self._asked[key] = self._asked.get(key, 0) + 1
        if self._asked[key] > 1:
            key = f"{key}.{self._asked[key]}"
        if self.in_handshake_era:
            return await self._ask_until_valid(request, read)
        why = "the answer is missing"
        if key in self._answers:
            try:
                return read(self._answers[key])
            except InvalidAnswer as error:
                del self._answers[key]
                why = clean(str(error))
                request = _repeat_question(request, why)
        self._tries[key] = self._tries.get(key, 0) + 1
        if self._tries[key] > _MAX_ATTEMPTS:  # a client could otherwise run the handler any number of times
            raise InvalidAnswer(f"the client's answer to {request['method']} is invalid: {why}")
        self._pending[key] = request
        for _ in range(_ROUND_ITERATIONS):
            await asyncio.sleep(0)
        raise CallSuspension

    async def run_once(self, key: str, function: Callable[..., Any]) -> Any:
        """Return the result of `function`. Once it has returned, `function` is not called again in this request.

        If `function` requires a parameter, it receives the effect's idempotency key.

        Raises:
            TypeError: The result is not JSON.
        """
        if key in self._done:
            return copy_json(self._done[key])  # the handler can change its copy
        if key not in self._running:
            # A concurrent question has stopped the handler, and `asyncio.gather` lets the other coroutines continue.
            if self._request.is_suspended:
                raise CallSuspension
            self._running[key] = asyncio.ensure_future(self._run_once(key, function))
        # A concurrent question can stop the handler. The function then continues, and `settle_effects` waits for it.
        return copy_json(await asyncio.shield(self._running[key]))

    def make_idempotency_key(self, key: str) -> str:
        """Return 32 hexadecimal digits that identify an effect.

        They are the same only in the rounds of this request and in calls with the same `once` key.
        """
        return hashlib.sha256(f"{self._get_seed()} {key}".encode()).hexdigest()[:32]

    def _get_seed(self) -> str:
        if self._request.once_key is not None:
            return self._request.once_key
        # Stored with the results of `once`, so that later rounds use the same seed.
        seed: str = self._done.setdefault(f"{OWN_PREFIX}seed", secrets.token_hex(16))
        return seed

    async def _run_once(self, key: str, function: Callable[..., Any]) -> Any:
        if _requires_parameter(function):
            function = partial(function, self.make_idempotency_key(key))
        try:
            value = function() if inspect.iscoroutinefunction(function) else await self._request.run_in_thread(function)
            self._done[key] = json.loads(encode_json(await value if inspect.isawaitable(value) else value)[1])
            await self.save()
        finally:
            del self._running[key]
        return self._done[key]

    async def name_url_question(self, elicitation: str | None = None) -> str | None:
        """Return a URL elicitation's ID, for its completion notification; `None` in MCP 2026-07-28 and later.

        `elicitation` is the ID to use; by default a new one. Raises ValueError if the ID is already in use.
        """
        if not self.in_handshake_era:
            return None
        known = elicitation or secrets.token_hex(16)
        await self._request.channel.record_elicitation(known)
        return known

    async def complete(self, elicitation: str) -> bool:
        """Notify the client that a URL elicitation is complete, and return whether a client was notified."""
        return await self._request.channel.complete_elicitation(elicitation)

    async def require_url(self, needed: UrlRequired) -> None:
        """Require a visit to a URL: fail the request or, in MCP 2026-07-28 and later, ask the user to visit the URL."""
        if not self.can("elicitation.url"):
            raise MissingCapability({"elicitation": {"url": {}}})
        if self.in_handshake_era:
            await self._request.channel.record_elicitation(needed.elicitation)
            data = {"elicitations": [make_url_params(needed.url, needed.message, needed.elicitation)]}
            raise ProtocolError(URL_ELICITATION_REQUIRED, "The user must visit a URL first", data)
        answer = self._answers.pop(needed.name, None)
        if answer is not None and read_elicit_result(answer).action != "accept":
            raise UrlNotVisitedError("The user did not open the URL that this request requires.")
        self._tries[needed.name] = self._tries.get(needed.name, 0) + 1
        if self._tries[needed.name] > _MAX_ATTEMPTS:
            raise UrlNotVisitedError("The user did not complete the visit to the URL that this request requires.")
        params = make_url_params(needed.url, needed.message, await self.name_url_question(needed.elicitation))
        self._pending[needed.name] = {"method": ELICIT, "params": params}

    async def settle_effects(self) -> None:
        """Wait for running `once` functions and start no others, so that later rounds do not call them again."""
        self._request.is_suspended = True
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    def describe(self) -> dict[str, Any]:
        """Return the `input_required` result that asks the unanswered questions."""
        state = {"mark": make_nonce(), **self.state, "asked": [*self._pending]}
        return {
            "resultType": "input_required",
            "inputRequests": dict(self._pending),
            "requestState": json.dumps(state, separators=(",", ":")),
        }

    async def _ask_until_valid(self, request: dict[str, Any], read: Callable[[Mapping[str, Any]], _T]) -> _T:
        method, asked = request["method"], request
        for number in range(1, _MAX_ATTEMPTS + 1):
            try:
                async with self._request.pause():
                    answer = await self._request.channel.request(method, asked.get("params"))
                return read(answer)
            except ProtocolError as error:
                raise InvalidAnswer(f"the client refused {method}: {clean(error.message)}") from error
            except InvalidAnswer as error:
                why = clean(str(error))
                if number == _MAX_ATTEMPTS:
                    raise InvalidAnswer(f"the client's answer to {method} is invalid: {why}") from error
                asked = _repeat_question(request, why)
        raise AssertionError


def _requires_parameter(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # some built-in functions have no signature
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return any(each.kind in positional and each.default is each.empty for each in parameters)


def _repeat_question(request: dict[str, Any], why: str) -> dict[str, Any]:
    """Return a question that includes the error in its last answer, in the message to the user or in `_meta`."""
    params: dict[str, Any] = request.get("params") or {}
    if request["method"] == ELICIT:
        more: dict[str, Any] = {"message": f"{params['message']}\n\nThe last answer is invalid: {why}"}
    else:
        more = {"_meta": {**params.get("_meta", {}), REFUSED: why}}
    return {**request, "params": {**params, **more}}


def reject_answer(error: ValidationError) -> InvalidAnswer:
    """Return the error for an answer that does not match its pydantic model."""
    return InvalidAnswer(describe_problems(error))


def read_elicit_result(answer: object) -> ElicitResult:
    """Parse the client's answer to an elicitation. Raises InvalidAnswer."""
    try:
        return ElicitResult.from_json(answer)
    except ValueError as error:
        raise InvalidAnswer(str(error)) from error


def is_suspended(error: BaseException) -> bool:
    """Return whether an exception is a CallSuspension, or a group that contains only CallSuspensions."""
    if is_group(error):
        return all(is_suspended(each) for each in error.exceptions)
    return isinstance(error, CallSuspension)


def find_inner(error: BaseException, kind: type[_Error]) -> _Error | None:
    """Return the first exception of type `kind` in an exception or, recursively, in a group, or `None`."""
    return next(iter(find_all_inner(error, kind)), None)


def find_all_inner(error: BaseException, kind: type[_Error]) -> list[_Error]:
    """Return all exceptions of type `kind` in an exception or, recursively, in a group."""
    if is_group(error):
        return [match for each in error.exceptions for match in find_all_inner(each, kind)]
    return [error] if isinstance(error, kind) else []


def make_url_params(url: str, message: str, elicitation: str | None) -> dict[str, Any]:
    """Return the parameters of a URL elicitation. Raises ValueError unless the URL is http or https."""
    if not url.startswith(("https://", "http://")):
        raise ValueError(f"{url!r} is not an http or https URL")
    params = {"mode": "url", "message": clean(message), "url": url}
    return params if elicitation is None else {**params, "elicitationId": elicitation}


def require_url(name: str, url: str, message: str, elicitation: str | None) -> UrlRequired:
    """Return the exception that asks the user to visit a URL. `elicitation` is its ID; by default a new one.

    Raises:
        ValueError: The URL is not http or https.
    """
    known = elicitation or secrets.token_hex(16)
    make_url_params(url, message, known)
    return UrlRequired(name, url, message, known)


def is_request_outcome(error: BaseException) -> bool:
    """Return whether a handler's exception is a response (`MCPError`) or a wait for the client, not a failure.

    Raises:
        MissingCapability: The handler asked questions that the client does not support.
    """
    if missing := find_all_inner(error, MissingCapability):
        together = MissingCapability(_merge([each.required for each in missing]))
        raise (together if len(missing) > 1 else missing[0]) from None
    return find_inner(error, UrlRequired) is not None or find_mcp_error(error) is not None or is_suspended(error)


def find_mcp_error(error: BaseException) -> Any:
    """Return the `MCPError` in a handler's exception, from the SDK or this library; `None` if there is none."""
    for name in ("stubwright_runtime.client.rpc.mcp_error", "mcp.shared.exceptions"):
        kind = getattr(find_loaded(name), "MCPError", None)  # version 1 of the SDK has another class
        found = None if kind is None else find_inner(error, kind)
        if found is not None:
            return found
    return None


def _merge(required: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Merge capabilities into one object, such as `{"elicitation": {"url": {}}, "sampling": {}}`."""
    merged: dict[str, Any] = {}
    for each in required:
        for name, parts in each.items():
            merged[name] = {**merged.get(name, {}), **parts}
    return merged


def find_rounds(request: Request) -> InputRequests:
    """Return a request's questions and answers, created on first use."""
    if request.rounds is None:
        request.rounds = InputRequests(request)
    rounds: InputRequests = request.rounds
    return rounds


async def settle(request: Request, answer: Callable[[Request], Awaitable[_T]]) -> _T | None:
    """Return a request's result; `None` if the request waits for the client's answers."""
    try:
        result = await answer(request)
    except BaseException as error:
        if not await _is_waiting(request, error):
            raise
    else:
        if request.rounds is None or not request.rounds.pending:
            return result
    await find_rounds(request).settle_effects()
    return None


async def _is_waiting(request: Request, error: BaseException) -> bool:
    """Return whether a handler's exception means that the request waits for the client."""
    if (needed := find_inner(error, UrlRequired)) is None:
        return is_suspended(error)
    await find_rounds(request).require_url(needed)
    return True


def is_control_flow(error: BaseException) -> bool:
    """Return whether an exception is not a handler failure: a cancellation, a suspension or an `MCPError`.

    Raises:
        MissingCapability: The handler asked questions that the client does not support.
    """
    return is_cancelled(error) or is_request_outcome(error)


class InputRequestRunner:
    """Runs requests that ask the client questions, in every round.

    Attributes:
        urls: The URL elicitations that the user has not completed.
    """

    def __init__(self, patience: float, store: Store, states: RequestStates) -> None:
        """Create a server's runner.

        Args:
            patience: How long a `requestState` is valid, in seconds.
            store: Stores which `requestState` values were used, so that each works once.
            states: Encrypts and decrypts `requestState`.
        """
        self.urls = UrlQuestions()
        self._patience = patience
        self._store = store
        self._states = states

    async def restore(self, request: Request) -> None:
        """Restore the state of a request's earlier rounds.

        Raises:
            ProtocolError: The `requestState` is invalid or was already used.
            StateLost: The store is unavailable.
        """
        params = request.params
        state = await self._open_state(params.get("requestState"), request)
        if "stateless" in request.revision.features:
            request.rounds = InputRequests(request, state, params.get("inputResponses"))

    async def finish(self, request: Request, result: Result) -> Result:
        """Return the request's unanswered questions, or else `result` with its `requestState` encrypted."""
        if request.rounds is not None and request.rounds.pending:
            return await self._ask(request)
        return result if result is None else await self._seal_state(result, request)

    async def handle_error(self, request: Request, error: BaseException) -> Result:
        """Return the result if a handler's exception asks questions or refuses the request, otherwise `None`.

        Raises:
            ProtocolError: The handler raised an `MCPError`, or the client cannot answer a question.
            StateLost: The store is unavailable.
        """
        try:
            if await _is_waiting(request, error):
                return await self._ask(request)
        except (UrlNotVisitedError, MissingCapability) as refusal:
            return _refuse_question(request, refusal)
        if isinstance(error, (UrlNotVisitedError, MissingCapability)):
            return _refuse_question(request, error)
        if isinstance(error, Exception) and (raised := find_mcp_error(error)) is not None:
            data = None if raised.error.data is None else encode_json(raised.error.data)[0]
            raise ProtocolError(raised.error.code, clean(raised.error.message), data) from error
        return None

    async def _ask(self, request: Request) -> Result:
        rounds = find_rounds(request)
        await rounds.settle_effects()
        return await self._seal_state(rounds.describe(), request)

    async def _seal_state(self, result: Mapping[str, Any], request: Request) -> Mapping[str, Any]:
        # A replayed result can also have a `requestState`.
        state = result.get("requestState")
        return result if state is None else {**result, "requestState": await self._states.seal(state, request)}

    async def _open_state(self, token: object, request: Request) -> dict[str, Any] | None:
        """Return the decrypted content of a `requestState`. Raise ProtocolError if the state was already used."""
        if token is None:
            return None
        decoded: dict[str, Any] = json.loads(await self._states.open(token, request))
        try:
            is_first = await self._store.use_nonce(decoded["mark"], self._patience, payer=request.principal.key)
        except StateLost as error:
            raise StateLost("cannot check whether the requestState was used") from error
        if is_first:
            return decoded
        log().warning("rejected a requestState for %s: it was already used", request.method)
        raise refuse_state()


def _refuse_question(request: Request, error: UrlNotVisitedError | MissingCapability) -> Result:
    """Return the result of a tool call that could not ask a question. Raise ProtocolError for other requests."""
    is_call, is_stateless = request.method == "tools/call", request.revision.has("stateless")
    if isinstance(error, UrlNotVisitedError):
        record_status("denied", "not_visited")
        if is_call:
            return refuse(str(error), "denied", "not_visited").result
        raise ProtocolError(INVALID_REQUEST, str(error)) from None
    record_status("failed", "client_capability")
    if is_call and not is_stateless:
        return refuse(f"{error}.", "failed", "client_capability").result
    code = MISSING_REQUIRED_CLIENT_CAPABILITY if is_stateless else INVALID_REQUEST
    raise ProtocolError(code, str(error), {"requiredCapabilities": error.required}) from None


def _join(required: Mapping[str, Any]) -> str:
    names = [f"{first}.{part}" for first, parts in required.items() for part in parts or ()]
    return ", ".join([*(first for first, parts in required.items() if not parts), *names])
