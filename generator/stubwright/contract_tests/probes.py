"""Verifies hints by comparing the server state that a probe tool returns before and after calls."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stubwright.contract_tests import checks
from stubwright.contract_tests.answers import Result
from stubwright.contract_tests.checks import Finding
from stubwright.importers.document_reader import SourceError

if TYPE_CHECKING:
    from stubwright.contract_tests.cases import Case
    from stubwright.contract_tests.session import Session


class ProbeError(SourceError):
    """The probe is unusable. The message explains why."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call: the tool's name and the arguments."""

    tool: str
    arguments: Mapping[str, Any]


class Probe:
    """Compares a server's state before and after calls."""

    def __init__(self, session: Session, call: Call, tool: Mapping[str, Any]) -> None:
        self._session = session
        self._call = call
        self._tool = tool
        self._shown = ""

    async def start(self) -> None:
        """Read the state before the first call.

        Raises:
            ProbeError: The probe's call fails, or its result is different each time.
            UnreachableError: The server is unavailable.
        """
        self._shown, again = await self._read_state(), await self._read_state()
        if not self._shown:
            raise ProbeError(f"`{self._call.tool}` fails with these arguments, so it cannot detect changes")
        if self._shown != again:
            raise ProbeError(f"`{self._call.tool}` returns different results each time, so it cannot detect changes")

    async def check(self, tool: Mapping[str, Any], case: Case) -> Iterator[Finding]:
        """Return the state changes after a call that contradict the tool's hints. Repeats an idempotent call once."""
        before, self._shown = self._shown, await self._read_state()
        annotations = tool.get("annotations")
        hints: Mapping[str, Any] = annotations if isinstance(annotations, dict) else {}
        call = f"`{self._call.tool}` returns a different result"
        if hints.get("readOnlyHint") is True:
            changed = self._shown != before
            return iter([Finding(checks.READ_ONLY, f"after this call, {call}")] if changed else [])
        if hints.get("idempotentHint") is True:
            await self._session.call(tool, case.arguments)
            once, self._shown = self._shown, await self._read_state()
            changed = self._shown != once
            return iter([Finding(checks.IDEMPOTENT, f"after the same call was repeated, {call}")] if changed else [])
        return iter(())

    async def _read_state(self) -> str:
        answer = await self._session.call(self._tool, self._call.arguments)
        if not isinstance(answer, Result) or answer.is_error:
            return ""
        return json.dumps({key: answer.value.get(key) for key in ("content", "structuredContent")}, sort_keys=True)
