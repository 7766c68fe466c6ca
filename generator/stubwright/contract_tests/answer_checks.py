"""Checks the response to one call.

A tool that rejects valid arguments in its result is not reported, because that can be business logic.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcp_types import INVALID_PARAMS, CallToolResult
from pydantic import ValidationError

from stubwright.contract_tests import checks
from stubwright.contract_tests.answers import Answer, ProtocolError, Result, Timeout
from stubwright.contract_tests.cases import Case
from stubwright.contract_tests.checks import Finding
from stubwright.contract_tests.stacks import find_stack
from stubwright_runtime.schema.validation import Validator, find_non_json
from stubwright_runtime.values.equality import are_equal
from stubwright_runtime.values.terminal import to_one_line

_SHOWN: Final = 300


def check_answer(case: Case, answer: Answer, output: Validator | None, revision: str) -> Iterator[Finding]:
    """Yield the checks that the response to a call fails.

    Args:
        output: The validator for the tool's `outputSchema`, if any.
        revision: The negotiated MCP revision.
    """
    for finding in _check(case, answer, output):
        if finding.check is checks.NO_PROTOCOL_ERROR and is_rejection(answer, revision):
            continue
        if finding.check.since <= revision:
            yield finding


def is_rejection(answer: Answer, revision: str) -> bool:
    """Return whether the response rejects the arguments in a form that the MCP revision allows.

    In MCP 2025-06-18 and earlier (server/tools, Error Handling), "Invalid arguments" are protocol errors; in MCP
    2025-11-25 and later, results with `isError`.
    """
    match answer:
        case Result():
            return answer.is_error
        case ProtocolError():
            return answer.code == INVALID_PARAMS and revision < checks.TOOL_ERROR.since
        case _:
            return False


def _check(case: Case, answer: Answer, output: Validator | None) -> Iterator[Finding]:
    match answer:
        case Timeout(seconds):
            yield Finding(checks.IN_TIME, f"no response within {seconds:g} s")
        case Result(value=content) | ProtocolError(data=content) if strays := [*find_non_json(content)]:
            path, number = strays[0]
            place = ".".join(map(str, path)) or "data"
            yield Finding(checks.MESSAGES_ONLY, f"{place}: JSON cannot represent the number {number}")
        case Result() | ProtocolError() if answer.is_question:
            return
        case ProtocolError():
            yield from _check_error(case, answer)
        case Result():
            yield from _check_result(case, answer, output)


def _check_error(case: Case, error: ProtocolError) -> Iterator[Finding]:
    shown = f"{_shorten(error.message)} ({error.code})"
    if language := find_stack([error.message, error.data]):
        yield Finding(checks.NO_STACK, f"the protocol error contains a {language} stack trace")
    if case.is_valid:
        yield Finding(checks.NO_PROTOCOL_ERROR, f"the call caused the protocol error {shown}")
        return
    yield Finding(checks.TOOL_ERROR, f"the call caused the protocol error {shown}")
    yield from _check_words(case, error.message)


def _check_result(case: Case, result: Result, output: Validator | None) -> Iterator[Finding]:
    try:
        CallToolResult.model_validate(result.value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "the result"
        yield Finding(checks.WELL_FORMED, f"{place}: {first['msg']}")
        return
    if result.is_error:
        if language := find_stack(result.value.get("content")):
            yield Finding(checks.NO_STACK, f"the result with `isError` contains a {language} stack trace")
        if not case.is_valid or not result.text.strip():
            yield from _check_words(case, result.text)
        return
    if not case.is_valid:
        yield Finding(checks.REFUSED, f"the call was accepted, although {case.reason}")
        return
    if output is not None:
        yield from _check_structured(result.value, output)
    if "structuredContent" in result.value and not _is_mirrored(result.value):
        yield Finding(checks.MIRRORED, "no text block contains the JSON of `structuredContent`")


def _check_words(case: Case, text: str) -> Iterator[Finding]:
    if not text.strip():
        yield Finding(checks.SAYS_WHAT, "the error has no text")
    elif case.about and not any(name.casefold() in text.casefold() for name in case.about):
        yield Finding(checks.SAYS_WHAT, f"the error does not mention `{case.about[-1]}`: {_shorten(text)}")


def _check_structured(result: Mapping[str, Any], output: Validator) -> Iterator[Finding]:
    if "structuredContent" not in result:
        yield Finding(checks.FITS_OUTPUT, "`structuredContent` is missing")
    elif errors := output.find_errors(result["structuredContent"], "structuredContent"):
        yield Finding(checks.FITS_OUTPUT, "; ".join(errors[:3]))


def _is_mirrored(result: Mapping[str, Any]) -> bool:
    for block in result["content"]:
        if block.get("type") == "text":
            try:
                if are_equal(json.loads(block["text"]), result["structuredContent"]):
                    return True
            except (ValueError, RecursionError):
                continue
    return False


def _shorten(text: str) -> str:
    line = to_one_line(text.strip())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"
