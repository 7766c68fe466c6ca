"""Calls with arguments that violate the schema, to an API with a wrong document (`input: lenient`)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import prompt_ends
from fake_api import Asked
from http_tools import called, run_package

ends_are_prompt = prompt_ends.ends_are_prompt

PROPERTIES: Mapping[str, Any] = {"kind": {"enum": ["a"]}, "count": {"type": "integer"}, "id": {"type": "string"}}


def tools(**http: Any) -> list[Any]:
    send = called("send", PROPERTIES, {"method": "POST", "url": "/x/{id}", **http})
    send["inputSchema"] |= {"required": ["kind"], "additionalProperties": False}
    find = called("find", PROPERTIES, {"url": "/y", "query": {"kind": "{kind}"}, **http})
    return [send, find]


def echo(asked: Asked) -> Any:
    return {"path": asked.path, "query": asked.query, "body": asked.body.decode()}


@pytest.mark.parametrize("at", ["api", "tool"])
def test_what_does_not_fit_is_sent_and_logged(at: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    of_api = {"input": "lenient"} if at == "api" else {}
    of_tool = {} if at == "api" else {"input": "lenient"}
    with run_package(tmp_path, tools(**of_tool), echo, **of_api) as there, caplog.at_level(logging.WARNING):
        seen = there.text("send", id="1", kind="other", count="many", more=[1])
        assert '"body":"{\\"kind\\":\\"other\\",\\"count\\":\\"many\\",\\"more\\":[1]}"' in seen.replace(" ", "")
        (line,) = [record.message for record in caplog.records if "invalid arguments" in record.message]
        assert line.startswith("send was called with invalid arguments: kind: expected ")
        caplog.clear()
        there.text("send", id="1", kind="a")
        assert not caplog.records


def test_what_cannot_be_sent_is_still_refused(tmp_path: Path) -> None:
    with run_package(tmp_path, tools(input="lenient"), echo) as there:
        assert there.refused("send", kind="a") == "`id` is part of the URL and cannot be omitted."
        assert there.refused("send", id="..", kind=1) == (
            "`id` is part of the URL and cannot contain the path segment `.` or `..`."
        )
        assert there.refused("find", kind="b", other=1) == (
            "Invalid arguments for find: the request cannot contain `other`."
        )
        assert there.api.asked == []


def test_strict_is_the_default_and_a_tool_can_be_strict_by_itself(tmp_path: Path) -> None:
    strict, _ = tools(input="strict")
    _, plain = tools()
    with run_package(tmp_path, [strict, plain], echo, input="lenient") as there:
        assert "kind: expected" in there.refused("send", id="1", kind="b")
        assert "kind=b" in there.text("find", kind="b")
    (tmp_path / "other").mkdir()
    with run_package(tmp_path / "other", tools(), echo) as there:
        assert "kind: expected" in there.refused("find", kind="b")


def test_a_method_that_was_written_gets_only_what_fits(tmp_path: Path) -> None:
    class Handlers:
        async def find(self, args: Any, ctx: Any) -> str:
            return f"found {args.kind}"

    with run_package(tmp_path, tools(input="lenient"), echo) as there:
        result = there.call("find", Handlers(), kind="b")
        assert result.is_error
        assert "kind: expected" in result.content[0].text
        assert there.call("find", Handlers(), kind="a").content[0].text == "found a"
