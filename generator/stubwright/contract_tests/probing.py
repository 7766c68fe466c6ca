"""The state of a server, as one of its tools shows it, so that hints can be compared with the effects of calls."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stubwright.contract_tests import checks
from stubwright.contract_tests.answers import Result
from stubwright.contract_tests.checks import Finding
from stubwright.importers.reading import SourceError

if TYPE_CHECKING:
    from stubwright.contract_tests.cases import Case
    from stubwright.contract_tests.session import Session


class ProbeError(SourceError):
    """The probe cannot compare anything; the message explains why."""


@dataclass(frozen=True, slots=True)
class Call:
    """The call that shows the server's state: the name of a tool, and its arguments."""

    tool: str
    arguments: Mapping[str, Any]


class Probe:
    """Compares what a server keeps before and after calls."""

    def __init__(self, session: Session, call: Call, tool: Mapping[str, Any]) -> None:
        """Take the server, the call and the tool that it calls."""
        self._session = session
        self._call = call
        self._tool = tool
        self._shown = ""

    async def start(self) -> None:
        """Look for the first time.

        Raises:
            ProbeError: The call fails, or shows something else each time.
            UnreachableError: The server is unavailable.
        """
        self._shown, again = await self._look(), await self._look()
        if not self._shown:
            raise ProbeError(f"`{self._call.tool}` fails with these arguments, so it cannot detect changes")
        if self._shown != again:
            raise ProbeError(f"`{self._call.tool}` answers differently each time, so it cannot detect changes")

    async def judge(self, tool: Mapping[str, Any], case: Case) -> Iterator[Finding]:
        """Return the changes by an answered call that contradict its tool's hints; the call may be sent once more."""
        before, self._shown = self._shown, await self._look()
        annotations = tool.get("annotations")
        hints: Mapping[str, Any] = annotations if isinstance(annotations, dict) else {}
        call = f"`{self._call.tool}` shows something else"
        if hints.get("readOnlyHint") is True:
            changed = self._shown != before
            return iter([Finding(checks.READ_ONLY, f"after this call, {call}")] if changed else [])
        if hints.get("idempotentHint") is True:
            await self._session.call(tool, case.arguments)
            once, self._shown = self._shown, await self._look()
            changed = self._shown != once
            return iter([Finding(checks.IDEMPOTENT, f"after the same call once more, {call}")] if changed else [])
        return iter(())

    async def _look(self) -> str:
        """Return the text that the probe shows; empty if it shows none."""
        answer = await self._session.call(self._tool, self._call.arguments)
        if not isinstance(answer, Result) or answer.is_error:
            return ""
        return json.dumps({key: answer.value.get(key) for key in ("content", "structuredContent")}, sort_keys=True)
