"""One client on standard input and output: which way each of its messages takes.

Takes lines; answers plain requests directly, and gives the SDK all others, which is loaded with the first of them. What
the client has said before is replayed to it then, so that it knows as much as if it had heard all.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Final

from ....mcp.errors import ProtocolError
from ....observability.logs import log
from ...direct import plain
from ...direct.answers import Direct, DirectExchange, is_on, to_json
from ...direct.clients import Client
from ...direct.parsing import parse
from ...direct.runs import DirectChannel, Run
from ...observability.instrumentation import is_observed
from .due import Due

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from ...core.core import Core
    from ...core.exchange import Result
    from ...core.lists import Change
    from .conversation import Conversation
    from .wire import Line, Output

_LAST_ANSWERS: Final = 2.0  # seconds for the answers that are still due when the input ends
_LAST_ERRORS: Final = 1.0  # seconds for telling the client which requests a stop cut off

_INITIALIZED: Final = "notifications/initialized"


class Connection:
    """The client."""

    def __init__(self, core: Core, output: Output) -> None:
        """Take the server, and where answers go."""
        self._core = core
        self._output = output
        self._direct = Direct(core)
        self._is_direct = is_on()
        self._due = Due()
        self._runs: dict[str | int, Run] = {}
        self._opening: Mapping[str, Any] | None = None
        """The first request, which decides the era."""
        self._client: Client | None = None
        """Who has shaken hands, up to 2025-11-25."""
        self._end_session: Callable[[], None] | None = None
        """Notes how long the session was there, if somebody observes it."""
        self._is_initialized = False
        self._is_disconnected = False
        self._conversation: Conversation | None = None
        self._beginning = asyncio.Lock()
        self._context = copy_context()
        self._tasks: set[asyncio.Task[None]] = set()
        core.publishers.append(self._tell)

    def takes(self, line: Line) -> bool:
        """Begin to answer what a line says, if it is a plain request; whether it is."""
        message = self._parse(line)
        if message is None or not plain.is_request(message) or not self._is_plain(message, line):
            return False
        self._answer(message)
        return True

    async def take(self, line: Line) -> None:
        """Answer what a line says, or begin to."""
        if not line.data.strip() or self.takes(line):
            return
        message = self._parse(line)
        if message is not None and plain.is_notification(message):
            await self._hear(message, line)
        else:
            await self._pass_on(line)

    def _parse(self, line: Line) -> dict[str, Any] | None:
        return parse(line.data) if line.is_whole and self._is_direct else None

    def _is_plain(self, message: Mapping[str, Any], line: Line) -> bool:
        """Whether a request is answered directly."""
        if message["id"] in self._runs:
            return False
        if self._opening is None:
            if plain.is_initialize(message, len(line.data)):
                return True
            if not plain.opens_stateless(message):
                return False
        return plain.is_plain(message, stateless=self._client is None) and self._direct.takes(message)

    def _answer(self, message: Mapping[str, Any]) -> None:
        """Begin to answer a plain request."""
        params: Mapping[str, Any] | None = message.get("params")
        if self._opening is None:
            self._opening = message
            if params is not None and message["method"] == "initialize":
                self._client = Client.of_handshake(params, self._core.changes)
        client = self._client or Client.of_request((params or {})["_meta"])
        run = Run(message["id"], lambda run: self._spawn(self._hand_over(run, message)))
        channel = DirectChannel(client, params, run, self._notify)
        exchange = DirectExchange(message["method"], params, run.id, False, client, channel)
        if client is self._client and message is self._opening:
            self._end_session = self._core.instrumentation.begin_session(exchange)
        self._runs[run.id] = run
        self._due.add(run.id)
        run.task = asyncio.create_task(self._respond(run, exchange))
        # A task that is cancelled before its first step never runs, so it cannot clean up after itself.
        run.task.add_done_callback(lambda _: self._give_up(run))

    async def _notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send the client a notification."""
        await self._output.send(to_json({"jsonrpc": "2.0", "method": method, "params": params}))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _respond(self, run: Run, exchange: DirectExchange) -> None:
        """Answer a request, unless it is handed over meanwhile, or given up."""
        try:
            result: Result | ProtocolError = await self._direct.answer(exchange)
        except ProtocolError as error:
            result = error
        if run.finish(result):
            del self._runs[run.id]
            return
        try:
            await self._output.send(self._direct.response(exchange, result))
        finally:
            self._forget(run)

    def _give_up(self, run: Run) -> None:
        """Forget a request that was cancelled."""
        if self._runs.get(run.id) is run:
            run.give_up()
            self._forget(run)

    def _forget(self, run: Run) -> None:
        """Note that a request is answered, or that nobody wants its answer."""
        del self._runs[run.id]
        self._due.remove(run.id)

    async def _hand_over(self, run: Run, message: Mapping[str, Any]) -> None:
        """Have the SDK answer a request whose run goes on."""
        conversation = None if self._is_disconnected else await self._converse()
        if conversation is None or self._is_disconnected:
            run.take_back()
            return
        if not run.is_cancelled:
            run.is_passed_on = True
            await conversation.hand_over(run, message)

    async def _converse(self) -> Conversation:
        """The SDK's connection, which knows what the client has said so far."""
        async with self._beginning:
            if self._conversation is None:
                from .conversation import Conversation

                wants = None if self._client is None else self._client.wants
                conversation = Conversation(self._core, self._output, self._due, wants, self._context.copy())
                if self._opening is None:
                    self._is_direct = False  # the first request decides the era, and the SDK has it now
                elif self._client is None:
                    await conversation.replay("server/discover", {"_meta": self._opening["params"]["_meta"]})
                else:
                    await conversation.replay("initialize", self._opening["params"])
                    if self._is_initialized:
                        await conversation.notify(_INITIALIZED)
                self._conversation = conversation
                if self._is_disconnected:
                    await conversation.disconnect()
        if self._conversation.task.done():
            self._conversation.task.result()
        return self._conversation

    async def _hear(self, message: Mapping[str, Any], line: Line) -> None:
        """Take a notification."""
        if self._client is not None and self._conversation is None and is_observed():
            await self._direct.note(message, self._client)
        params: Mapping[str, Any] = message.get("params", {})
        if message["method"] == _INITIALIZED and self._client is not None:
            self._is_initialized = True
            if self._conversation is None:
                await self._catch_up()
                return
        if message["method"] == "notifications/cancelled" and type(params.get("requestId")) in (int, str):
            run = self._runs.get(params["requestId"])
            if run is not None:
                if run.is_passed_on:
                    await self._pass_on(line)  # so that the SDK answers nothing; it may not have joined the run yet
                if run.id != (self._opening or {}).get("id") or self._client is None:  # a handshake is not cancelled
                    run.cancel()
                return
        if self._conversation is not None:
            await self._pass_on(line)

    async def _tell(self, change: Change) -> None:
        """Have the client told of a change, which the SDK does."""
        if change.uri is None and self._is_initialized and self._conversation is None:
            await self._converse()

    async def _catch_up(self) -> None:
        """Have the client told of what changed since it shook hands."""
        wants = None if self._client is None else self._client.wants
        if wants is not None and wants.since is not None and self._core.changes.count > wants.since:
            await self._converse()

    async def _pass_on(self, line: Line) -> None:
        """Give the SDK what a line says; what is malformed is answered at once."""
        from ..framing import incoming, too_long

        for entry in incoming(line.data) if line.is_whole else (too_long(line.data),):
            if entry.problem is not None:
                log().warning("refused a message that %s", entry.problem)
            if entry.answer is not None:
                await self._output.send(entry.answer.model_dump_json(by_alias=True, exclude_unset=True).encode())
            if entry.message is not None:
                conversation = await self._converse()
                await conversation.give(entry.message)

    async def cut_off(self) -> None:
        """Answer what is under way with errors, as far as the client takes them."""
        self._core.end_streams()
        self._core.in_flight.end()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_ERRORS):
                await self._due.all_answered()

    async def disconnect(self) -> None:
        """Give what is under way time to end, since the client says no more; what waits for an answer of it fails."""
        self._is_disconnected = True
        self._core.end_streams()
        if self._conversation is not None:
            await self._conversation.disconnect()
        try:
            async with asyncio.timeout(_LAST_ANSWERS):
                await self._due.all_answered()
        except TimeoutError:
            await self.cut_off()

    async def close(self) -> None:
        """End all that is under way."""
        if self._end_session is not None:
            self._end_session()
        self._core.publishers.remove(self._tell)
        tasks = [*self._tasks, *(run.task for run in self._runs.values() if run.task is not None)]
        for task in tasks:
            task.cancel()
        if self._conversation is not None:
            await self._conversation.close()
        if tasks:
            await asyncio.wait(tasks)
