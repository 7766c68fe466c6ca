"""`stubwright test` with faulty, correct and unavailable servers."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

import anyio
import mcp_types
import pytest
from jsonschema import Draft202012Validator

import amounts
import forked
from command_line import stubwright
from stubwright.contract_tests import protocol
from stubwright.contract_tests.answer_checks import check_answer, is_rejection
from stubwright.contract_tests.answers import Answer, Disconnect, ProtocolError, Result, Timeout
from stubwright.contract_tests.cases import Arguments, Case
from stubwright.contract_tests.shrinking import shrink, weigh
from stubwright.contract_tests.stacks import find_stack

ROOT: Final = Path(__file__).parents[2]
FAULTY: Final = str(ROOT / "tests" / "support" / "faulty_server.py")
SCHEMAS: Final[dict[str, dict[str, Any]]] = {
    "plain": {"type": "object"},
    "bounds": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 2, "maxLength": 5},
            "count": {"type": "integer", "minimum": 3, "maximum": 9},
            "kind": {"enum": ["a", "b", 3]},
            "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3, "uniqueItems": True},
        },
        "required": ["name", "kind"],
        "additionalProperties": False,
    },
    "references": {
        "type": "object",
        "properties": {"place": {"$ref": "#/$defs/Place"}, "when": {"type": ["string", "null"], "format": "date"}},
        "required": ["place"],
        "$defs": {"Place": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}},
    },
}
LISTING: Final = """\
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        results = {{
            "initialize": {{"protocolVersion": "2025-06-18", "capabilities": {{"tools": {{}}}},
                           "serverInfo": {{"name": "lists", "version": "1"}}}},
            "tools/list": {{"tools": json.loads('{tools}')}},
        }}
        known = message["method"] in results and "cursor" not in message.get("params", {{}})
        answer = {{"result": results[message["method"]]}} if known else {{"error": {{"code": -32602, "message": "no"}}}}
        print(json.dumps({{"jsonrpc": "2.0", "id": message["id"], **answer}}), flush=True)
"""


def run(folder: Path, *words: str, tools: tuple[str, ...] = ()) -> tuple[int, dict[str, Any]]:
    """Test the faulty server; the exit status, and its report."""
    done = stubwright("test", "--format", "json", *words, "--", *forked.interpreter(), FAULTY, *tools, cwd=folder)
    [report] = json.loads(done.stdout)["servers"]
    return done.returncode, report


# --- what is found ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "revision", "checks"),
    [
        (mcp_types.URL_ELICITATION_REQUIRED, "2026-07-28", []),
        (mcp_types.MISSING_REQUIRED_CLIENT_CAPABILITY, "2026-07-28", []),
        (mcp_types.INTERNAL_ERROR, "2025-06-18", ["valid-is-no-protocol-error"]),
        (mcp_types.INVALID_PARAMS, "2025-11-25", ["valid-is-no-protocol-error"]),
        (mcp_types.INVALID_PARAMS, "2025-06-18", []),
    ],
)
def test_an_error_that_asks_or_rejects_is_no_fault(code: int, revision: str, checks: list[str]) -> None:
    answer = ProtocolError(code, "Visit this page first", None, 0.1)
    found = check_answer(Case({}, True, "an example"), answer, None, revision)
    assert [finding.check.name for finding in found] == checks
    assert is_rejection(answer, revision) == (code == mcp_types.INVALID_PARAMS and not checks)


@pytest.mark.parametrize(("text", "checks"), [("Pet undefined not found", []), ("not found", ["error-says-what"])])
def test_an_error_names_an_argument_in_any_case(text: str, checks: list[str]) -> None:
    answer = Result({"content": [{"type": "text", "text": text}], "isError": True}, 0.1, 1)
    found = check_answer(Case({}, False, "missing", about=("pet",)), answer, None, "2026-07-28")
    assert [finding.check.name for finding in found] == checks


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Result({"content": [], "structuredContent": {"a": [math.nan]}}, 0.1, 1), "structuredContent.a.0: {} nan"),
        (ProtocolError(-32603, "no", -math.inf, 0.1), "data: {} -inf"),
    ],
)
def test_a_number_that_json_lacks_is_not_a_message(answer: Answer, message: str) -> None:
    [finding] = check_answer(Case({}, True, ""), answer, None, "2025-11-25")
    assert (finding.check.name, finding.message) == (
        "sends-only-messages",
        message.format("JSON cannot represent the number"),
    )


def test_each_fault_is_found_with_its_smallest_call(tmp_path: Path) -> None:
    tools = ("misfit", "stack", "protocol", "loose", "noisy", "good")
    status, report = run(tmp_path, tools=tools)
    assert status == 1
    errors = [
        (fault["tool"], fault["check"], fault["arguments"])
        for fault in report["faults"]
        if fault["severity"] == "error"
    ]
    assert errors == [
        (None, "unknown-tool-is-refused", None),
        ("loose", "invalid-is-refused", {}),
        ("misfit", "result-fits-output-schema", {"number": 11}),
        ("noisy", "sends-only-messages", {"number": 0}),
        ("protocol", "valid-is-no-protocol-error", {"text": 21 * "a"}),
        ("stack", "error-is-not-a-stack", {"text": ""}),
    ]


@pytest.mark.long
def test_a_server_that_ends_or_hangs_is_started_again_and_the_rest_goes_on(tmp_path: Path) -> None:
    status, report = run(tmp_path, "--deadline", "1s", "--cases", "40", tools=("crash", "hang", "good"))
    assert status == 1
    faults = {fault["tool"]: fault for fault in report["faults"] if fault["severity"] == "error"}
    assert faults["crash"]["check"] == "server-survives"
    assert "exited with status 3\n  | cannot spell that" in faults["crash"]["message"]
    assert not faults["crash"]["arguments"]["text"].isascii()
    assert faults["hang"]["check"] == "answers-in-time"
    assert faults["hang"]["arguments"]["number"] > 50
    crash, hang, good = report["tools"]
    assert (crash["ended"], hang["ended"]) == (
        f"{40 - crash['valid'] - crash['invalid']} not made, after 3 without a response",
        f"{40 - hang['valid'] - hang['invalid']} not made, after 3 without a response",
    )
    assert (good["valid"] + good["invalid"], good["ended"], good["refused"]) == (40, None, 0)


@pytest.mark.long
def test_the_printed_line_shows_the_fault_again(tmp_path: Path) -> None:
    _, report = run(tmp_path, tools=("stack",))
    [fault] = [fault for fault in report["faults"] if fault["check"] == "error-is-not-a-stack"]
    path = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        fault["call"], shell=True, cwd=tmp_path, env={**os.environ, **path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback (most recent call last)")


def test_hints_are_compared_with_what_calls_change(tmp_path: Path) -> None:
    tools = ("shown", "sneaky", "again", "good")
    status, report = run(tmp_path, "--probe", "shown {}", "--allow-writes", "--cases", "30", tools=tools)
    assert status == 1
    faults = {fault["check"]: (fault["tool"], fault["arguments"], fault["message"]) for fault in report["faults"]}
    words = "`shown` returns a different result"
    assert faults["read-only-changes-nothing"] == ("sneaky", {"number": 21}, f"after this call, {words}")
    again = ("again", {"number": 0}, f"after the same call was repeated, {words}")
    assert faults["idempotent-changes-nothing-more"] == again


@pytest.mark.long
def test_without_a_probe_no_hint_is_compared(tmp_path: Path) -> None:
    _, report = run(tmp_path, "--allow-writes", "--cases", "30", tools=("shown", "sneaky", "again", "good"))
    assert not {fault["check"] for fault in report["faults"]} & {"read-only-changes-nothing"}


@pytest.mark.parametrize(
    ("probe", "words"),
    amounts.sample(
        [
            ("fresh", "--probe: `fresh` returns different results each time, so it cannot detect changes"),
            ("shwn", "--probe: there is no tool `shwn`; did you mean `shown`?"),
            ('shown {"a": 1}', "--probe: `shown` fails with these arguments, so it cannot detect changes"),
            ("shown [1]", "argument --probe: write a tool name, and its arguments as a JSON object"),
            ("shown {", "argument --probe: the arguments for `shown` are not valid JSON: "),
        ],
        2,
    ),
)
def test_a_probe_that_shows_nothing_is_a_mistake_of_the_command_line(probe: str, words: str, tmp_path: Path) -> None:
    done = stubwright("test", "--probe", probe, "--", *forked.interpreter(), FAULTY, "shown", "fresh", cwd=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


class Cancelled:
    """A session whose server answers the first call; it is gone once a later one is cancelled, if it `ends`."""

    deadline = 10.0

    def __init__(self, *, ends: bool, seconds: float = 0.1) -> None:
        self.calls = 0
        self.cancelled = 0
        self._ends = ends
        self._seconds = seconds

    async def connect(self) -> None:
        pass

    async def call(self, _tool: Any, _arguments: Any) -> Answer:
        self.calls += 1
        if self.calls > 1:
            try:
                await anyio.sleep_forever()
            finally:
                self.cancelled += 1
        return Result({"content": []}, self._seconds, 2)

    async def ask(self, _method: str) -> Answer:
        return Disconnect("ended") if self._ends and self.cancelled else Result({"tools": []}, 0.1, 2)


@pytest.mark.parametrize(("ends", "seconds", "cancelled"), [(True, 0.1, 1), (False, 0.1, 2), (True, 6.0, 0)])
def test_a_server_goes_on_after_a_call_is_cancelled(ends: bool, seconds: float, cancelled: int) -> None:
    session: Any = Cancelled(ends=ends, seconds=seconds)
    fault = anyio.run(protocol.check_cancelled, session, {"name": "deaf"}, Case({}, True, "an example"))
    assert session.cancelled == cancelled, "a slow call is not cancelled"
    assert (fault is not None) is (ends and cancelled > 0)
    if fault is not None:
        words = "`tools/list`, sent after a call was cancelled, got no response: the server ended"
        assert (fault.check.name, fault.tool, fault.message) == ("goes-on-after-cancelling", "deaf", words)


_NO: Final = ProtocolError(-32602, "no", None, 0.1)
_LIMITED: Final = ProtocolError(-32000, "rate limit exceeded", None, 0.1)
_DEAD: Final = Disconnect("ended", has_ended=True)
_LISTED: Final = Result({"tools": [{"name": "a"}]}, 0.1, 2)
_FIRST_PAGE: Final = Result({"tools": [{"name": "a"}], "nextCursor": "x"}, 0.1, 2)


@pytest.mark.parametrize(
    ("answers", "found"),
    [
        ([_NO, _NO, _NO, _LISTED], ["list-keeps-its-order"]),
        ([_NO, _NO, _NO, _FIRST_PAGE], []),
        ([_LIMITED, _LIMITED, _LIMITED, _LIMITED], []),
        (
            [Disconnect("answered 429", 3.0), Disconnect("answered 429", 3.0), Disconnect("answered 404"), _FIRST_PAGE],
            [],
        ),
        ([_NO, _DEAD, _DEAD, _FIRST_PAGE], ["server-survives", "server-survives"]),
        ([_NO, _NO, _NO, _DEAD], ["server-survives"]),
        ([_NO, _NO, _NO, Timeout(3)], ["answers-in-time"]),
    ],
)
def test_requests_that_end_the_server_are_faults_and_those_that_hit_a_limit_are_not(
    answers: list[Answer], found: list[str]
) -> None:
    class Scripted:
        async def ask(self, _method: str, **_params: Any) -> Answer:
            return answers.pop(0)

        async def request(self, _label: str, _method: str, _params: Any) -> Answer:
            return answers.pop(0)

    session: Any = Scripted()

    async def judge_all() -> list[str]:
        return [fault.check.name async for fault in protocol.check_requests(session, [{"name": "a"}, {"name": "b"}])]

    assert anyio.run(judge_all) == found


@pytest.mark.parametrize(
    ("pattern", "fix"), amounts.sample([("god", "did you mean `good`?"), ("x*", "the tools are: good")], 1)
)
def test_a_pattern_that_no_tool_fits_is_wrong(pattern: str, fix: str, tmp_path: Path) -> None:
    done = stubwright(
        "test",
        "--tool",
        "go*",
        "--tool",
        pattern,
        "--cases",
        "5",
        "--",
        *forked.interpreter(),
        FAULTY,
        "good",
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert f"--tool: no tool matches `{pattern}`; {fix}" in done.stderr


def test_only_tools_that_say_that_they_only_read_are_called(tmp_path: Path) -> None:
    _, report = run(tmp_path, tools=("erase", "good"))
    assert report["tools"][0]["skipped"] == "it does not declare `readOnlyHint: true`; add --allow-writes to call it"
    assert not (tmp_path / "erased").exists()
    status, report = run(tmp_path, "--allow-writes", "--tool", "er*", "--cases", "5", tools=("erase", "good"))
    assert [tool["skipped"] for tool in report["tools"]] == [None, "no --tool names it"]
    assert (tmp_path / "erased").exists()
    assert status == 1  # the unknown tool


def test_a_server_of_ours_has_no_fault(tmp_path: Path) -> None:
    done = stubwright("test", "specs/weather.yaml", "--strict", "--junit", str(tmp_path / "report.xml"), cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")
    assert "0 errors and 0 warnings in 203 calls of 3 tools" in done.stdout
    [suite] = ElementTree.parse(tmp_path / "report.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("4", "0")


@pytest.mark.long
def test_warnings_count_with_strict_alone(tmp_path: Path) -> None:
    _, report = run(tmp_path, "--tool", "good", tools=("good",))
    warnings = [fault["check"] for fault in report["faults"] if fault["severity"] == "warning"]
    assert warnings == ["unknown-cursor-is-refused"]
    junit = tmp_path / "report.xml"
    for words, count in (((), 1), (("--strict",), 2)):
        done = stubwright(
            "test", *words, "--junit", str(junit), "--", *forked.interpreter(), FAULTY, "good", cwd=tmp_path
        )
        assert done.returncode == 1
        [failure] = ElementTree.parse(junit).getroot().iter("failure")
        assert len(failure.get("message", "").split(", ")) == count


def test_an_error_that_has_nothing_to_do_with_the_wrong_argument_is_not_judged_by_its_words(tmp_path: Path) -> None:
    _, report = run(tmp_path, "--cases", "40", tools=("absent", "elsewhere", "offline"))
    assert all(tool["invalid"] for tool in report["tools"])
    assert [fault["check"] for fault in report["faults"] if fault["tool"]] == ["valid-is-no-protocol-error"]


@pytest.mark.parametrize(
    ("arguments", "path", "base", "repaired"),
    [
        ({"name": "ab", "kind": 1}, ("kind",), {"name": "text", "kind": "a"}, {"name": "ab", "kind": "a"}),
        ({"name": "ab"}, ("kind",), {"name": "text", "kind": "a"}, {"name": "ab", "kind": "a"}),
        ({"name": "ab", "kind": "b", "more": 1}, ("more",), {"name": "text", "kind": "a"}, {"name": "ab", "kind": "b"}),
        (
            {"name": "ab", "kind": 3, "tags": [7]},
            ("tags", 0),
            {"tags": ["x"]},
            {"name": "ab", "kind": 3, "tags": ["x"]},
        ),
        ({"name": "ab", "kind": 3, "tags": []}, ("tags", 0), {"tags": ["x"]}, None),
        ({"name": "a", "kind": 1}, ("kind",), {"name": "text", "kind": "a"}, None),
    ],
)
def test_a_case_is_repaired_at_its_wrong_place_alone(arguments: Any, path: Any, base: Any, repaired: Any) -> None:
    case = Case(arguments, False, "wrong", path=path, base=base)
    found = Arguments(SCHEMAS["bounds"]).repair(case)
    assert (None if found is None else found.arguments) == repaired


def test_a_schema_that_is_none_is_a_fault_and_one_that_leads_elsewhere_is_not(tmp_path: Path) -> None:
    tools = [
        {"name": "far", "inputSchema": {"type": "object", "properties": {"a": {"$ref": "https://example.com/a"}}}},
        {"name": "misspelt", "inputSchema": {"type": "object", "properties": {"a": {"type": "strin"}}}},
        {"name": "without"},
    ]
    (tmp_path / "server.py").write_text(LISTING.format(tools=json.dumps(tools)))
    done = stubwright("test", "--allow-writes", "--format", "json", "--", sys.executable, "server.py", cwd=tmp_path)
    [report] = json.loads(done.stdout)["servers"]
    assert done.returncode == 1
    assert [(fault["tool"], fault["check"]) for fault in report["faults"]] == [
        ("misspelt", "schemas-are-valid"),
        ("without", "schemas-are-valid"),
    ]
    assert all(tool["skipped"].startswith("one of its schemas is unusable: ") for tool in report["tools"])


# --- unavailable servers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--", sys.executable, "-c", "raise SystemExit('no key')"), "exited with status 1"),
        (("http://127.0.0.1:9/mcp",), "cannot be reached"),
    ],
)
def test_a_server_that_is_away_has_a_status_of_its_own(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    done = stubwright("test", "--junit", "report.xml", *words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
    assert message in done.stderr
    [error] = ElementTree.parse(tmp_path / "report.xml").getroot().iter("error")
    assert message in error.get("message", "")


def test_a_configuration_is_tested_and_its_secrets_are_variables_in_lines_of_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = str(forked.interpreter_in(tmp_path))
    server = {"command": python, "args": [FAULTY, "stack", "${DESK_KEY}"], "env": {"DESK_KEY": "good"}}
    away = {"command": python, "args": ["-c", "raise SystemExit('no key')"]}
    unset = {"command": python, "args": ["${UNSET_KEY}"]}
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"unset": unset, "desk": server, "away": away}}))
    monkeypatch.setenv("DESK_KEY", "good")
    done = stubwright("test", "--config", ".mcp.json", "--format", "json", cwd=tmp_path)
    unasked, desk, gone = json.loads(done.stdout)["servers"]
    assert done.returncode == 1
    assert unasked == {"server": "unset", "problem": "it needs the variable `UNSET_KEY`, which is not set"}
    assert [tool["name"] for tool in desk["tools"]] == ["stack", "good"]
    assert gone["server"] == "away"
    assert "exited with status 1" in gone["problem"]
    calls = [fault["call"] for fault in desk["faults"] if fault["check"] == "error-is-not-a-stack"]
    command = f'{python} {FAULTY} stack "${{DESK_KEY}}"'
    assert calls == [f"""stubwright call stack '{{"text": ""}}' --env DESK_KEY -- {command}"""]


# --- the cases --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCHEMAS)
def test_cases_are_what_they_are_called_for_another_validator_too(name: str) -> None:
    schema = SCHEMAS[name]
    validator = Draft202012Validator(schema)
    cases = Arguments(schema).make_cases([], "0", 1_000)
    assert [case.is_valid for case in cases] == [validator.is_valid(case.arguments) for case in cases]
    assert any(case.is_valid for case in cases)
    assert cases == Arguments(schema).make_cases([], "0", 1_000)


@pytest.mark.parametrize("schema", [{}, True])
def test_a_schema_that_says_nothing_has_objects_as_its_cases(schema: Any) -> None:
    assert {} in [case.arguments for case in Arguments(schema).make_cases([], "0", 9) if case.is_valid]


def test_boundaries_are_tried_on_both_sides() -> None:
    cases = Arguments(SCHEMAS["bounds"]).make_cases([], "0", 1_000)

    def find(name: str) -> dict[bool, set[Any]]:
        return {
            is_valid: {
                len(value) if isinstance(value, str | list) else value
                for case in cases
                for key, value in case.arguments.items()
                if case.is_valid is is_valid and key == name and not isinstance(value, dict)
            }
            for is_valid in (True, False)
        }

    assert find("name")[True] >= {2, 5}
    assert find("name")[False] >= {0, 1, 6}
    assert find("count")[True] >= {3, 4, 8, 9}
    assert find("count")[False] >= {2, 10, None}
    assert find("tags")[False] >= {0, 4}
    assert {case.arguments["kind"] for case in cases if case.is_valid} == {"a", "b", 3}
    assert any("name" not in case.arguments and "name" in case.about for case in cases)


def test_examples_come_first_and_are_varied() -> None:
    example = {"name": "abcd", "kind": 3}
    first, *rest = Arguments(SCHEMAS["bounds"]).make_cases([example], "0", 50)
    assert (first.arguments, first.words) == (example, "an example")
    assert len(rest) == 49


def test_what_shrinks_gets_smaller_and_ends() -> None:
    value: Any = {"text": "Zoë \U0001f600", "numbers": [17, -2.5], "inner": {"is": True}}
    steps = 0
    while (smaller := next(shrink(value), None)) is not None:
        assert weigh(smaller) < weigh(value)
        value, steps = smaller, steps + 1
    assert value == {}
    assert steps == 1
    assert {"text": "", "numbers": [], "inner": {}} in [*shrink({"text": "a", "numbers": [], "inner": {}})]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ('Error: Traceback (most recent call last):\n  File "a.py", line 3', "Python"),
        ("TypeError: x is undefined\n    at run (/srv/app/index.js:10:5)", "Node.js"),
        ("java.lang.Error\n\tat com.acme.Tool.run(Tool.java:17)", "Java"),
        ("panic: oops\n\ngoroutine 1 [running]:\nmain.main()", "Go"),
        ("thread 'main' panicked at src/main.rs:2:5:\nboom", "Rust"),
        ("Meet me at noon (10:30:00)\n at the station, line 5", None),
        ("location: expected a string, got 5", None),
    ],
)
def test_stacks_are_told_from_other_texts(text: str, language: str | None) -> None:
    assert find_stack([{"type": "text", "text": text}]) == language


def test_a_server_needs_no_tools(tmp_path: Path) -> None:
    resource = "{name: a, uri: 'x://a', description: A text., mimeType: text/plain, stubwright: {text: hello}}"
    manifest = f"stubwright: 1\nserver: {{name: texts, version: 1.0.0}}\nresources:\n  - {resource}\n"
    (tmp_path / "texts.yaml").write_text(manifest)
    done = stubwright("test", "texts.yaml", "--mock", "--strict", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "0 errors and 0 warnings in 0 calls of 0 tools" in done.stdout
