"""A manifest's examples as pytest tests of the user's handlers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

import amounts
import forked
from forked import ALONE
from packages import generate, manifest, tool

READ_ONLY = {"readOnlyHint": True}
NUMBER = {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]}

HANDLERS = """
from pathlib import Path
from sample_mcp import SampleHandlers, ToolError

class Sample(SampleHandlers):
    async def test_it(self, args, ctx):
        if args.n == 7:
            raise ToolError("Seven is too many.")
        return {"n": "seven"} if args.n == 8 else {"n": args.n, **({"more": True} if args.n == 9 else {})}

    def say(self, args, ctx):
        Path("said").write_text("x")
        return "said"

    async def ask(self, args, ctx):
        return str(await ctx.ask.sure())

class Other(Sample):
    async def test_it(self, args, ctx):
        return {"n": 100}

class Needy(Sample):
    def __init__(self, account):
        pass
"""


def case(*examples: Mapping[str, Any], annotations: Any = READ_ONLY, **more: Any) -> dict[str, Any]:
    """A manifest whose first tool has these examples."""
    ours = {"examples": list(examples), **more.pop("ours", {})}
    first = tool("test_it", {"n": {"type": "number"}}, outputSchema=NUMBER, annotations=annotations, stubwright=ours)
    ask = {"ask": {"sure": {"message": "Sure?", "schema": {"type": "object", "properties": {}}}}}
    others = [
        tool("say", stubwright={"examples": [{"name": "once", "input": {}, "run": True}]}),
        tool("ask", annotations=READ_ONLY, stubwright={**ask, "examples": [{"input": {}}]}),
    ]
    return manifest([first, *others], python={"handlers": "logic:Sample"}, **more)


def run(folder: Path, value: Mapping[str, Any], **environment: str) -> tuple[int, str]:
    """Compile a manifest and run its package's tests with the handlers; return the exit status and pytest's output."""
    generate(folder, value)
    (folder / "logic.py").write_text(HANDLERS)
    (folder / "pytest.ini").touch()  # so that pytest looks no further up
    command = ["-m", "pytest", "-rs", "-v", "-p", "no:cacheprovider", "-W", "error", "test_sample_mcp.py"]
    done = forked.python(command, folder, [folder], **ALONE, COLUMNS="200", **environment)
    return done.returncode, done.stdout + done.stderr


def test_an_example_with_the_id_of_a_handle_is_left_out(tmp_path: Path) -> None:
    handle = {"type": "string", "x-handle": "basket"}
    value = case({"input": {"n": 1}}, {"name": "with", "input": {"n": 1, "id": "b1"}})
    value["handles"] = {"basket": {"state": {}, "ttl": "1d"}}
    value["tools"][0]["inputSchema"]["properties"]["id"] = handle
    status, said = run(tmp_path, value)
    assert status == 0, said
    assert re.findall(r"test_example\[test_it: (.+?)\] (\w+)", said) == [("example 1", "PASSED"), ("with", "SKIPPED")]
    assert "test_it requires a handle ID" in said


def test_each_example_is_a_test(tmp_path: Path) -> None:
    status, said = run(tmp_path, case({"name": "one", "input": {"n": 1}, "output": {"n": 5}}, {"input": {"n": 2}}))
    assert status == 0, said
    assert re.findall(r"test_example\[(.+?)\] (\w+)", said) == [
        ("test_it: one", "PASSED"),
        ("test_it: example 2", "PASSED"),
        ("say: once", "PASSED"),
        ("ask: example 1", "SKIPPED"),
    ]
    assert "ask asks the user a question, which a test cannot answer" in said
    assert (tmp_path / "said").read_text() == "x"


def test_an_exact_output_needs_no_cursor(tmp_path: Path) -> None:
    books = {"type": "object", "properties": {"books": {"type": "array", "items": {"type": "string"}}}}
    examples = [
        {"name": name, "input": {}, "output": {"books": titles}, "exact": True}
        for name, titles in (("right", ["Emma"]), ("wrong", ["Dune"]))
    ]
    ours = {"paginate": {"items": "books", "size": 1}, "examples": examples}
    value = manifest([tool("list_books", outputSchema=books, annotations=READ_ONLY, stubwright=ours)])
    value["python"] = {"handlers": "books:Books"}
    (tmp_path / "books.py").write_text(
        "class Books:\n"
        "    async def list_books(self, args, ctx):\n"
        "        return {'books': ['Emma', 'Dune'][: ctx.page.size], 'nextCursor': 'Emma'}\n"
    )
    status, said = run(tmp_path, value)
    assert status == 1, said
    assert re.findall(r"test_example\[list_books: (.+?)\] (\w+)", said)[:2] == [
        ("right", "PASSED"),
        ("wrong", "FAILED"),
    ]
    assert "nextCursor" not in said


@pytest.mark.parametrize(
    ("output", "fine"), amounts.sample([({"n": 1.0}, True), ({"n": 2}, False), ({"n": 1}, True)], 2)
)
def test_an_exact_output_is_compared(output: Any, fine: bool, tmp_path: Path) -> None:
    status, said = run(tmp_path, case({"name": "one", "input": {"n": 1}, "output": output, "exact": True}))
    assert (status == 0) is fine, said
    if not fine:
        assert "test_it: one returned a different output:" in said
        assert '-  "n": 2' in said
        assert '+  "n": 1' in said
        assert "anyio" not in said.partition("FAILURES")[2]


@pytest.mark.parametrize(
    ("output", "got", "same"),
    [
        ({"a": [1, {"b": None}]}, {"a": [1.0, {"b": None}]}, True),
        ({"a": None}, {}, False),
        ([1], [True], False),
        ([1, 2], [2, 1], False),
        ([1], [1, 1], False),
        (2**53 + 1, float(2**53), False),
        ("1", 1, False),
    ],
)
def test_json_values_are_compared_as_json_has_them(output: Any, got: Any, same: bool) -> None:
    from stubwright_runtime.values.equality import are_equal as equal

    assert equal(output, got) is same
    assert equal(got, output) is same


@pytest.mark.parametrize(
    ("n", "message"),
    amounts.sample(
        [
            (7, "test_it returned an error:\nE       Seven is too many."),
            (8, "The result of test_it does not match its output schema"),
        ],
        1,
    ),
)
def test_an_error_fails(n: int, message: str, tmp_path: Path) -> None:
    status, said = run(tmp_path, case({"input": {"n": n}}))
    assert status == 1
    assert message in said
    if n == 8:
        assert "n: expected a number" in said, "what the server logs is shown with the failure"


def test_a_tool_that_may_change_something_is_left_alone(tmp_path: Path) -> None:
    examples: list[dict[str, Any]] = [
        {"name": "left", "input": {"n": 7}},
        {"name": "run", "input": {"n": 1}, "run": True},
    ]
    status, said = run(tmp_path, case(*examples, annotations={}))
    assert status == 0, said
    assert "test_it is not `readOnlyHint: true`; to run the example anyway, add `run: true` to it" in said
    assert "test_example[test_it: left] SKIPPED" in said
    assert "test_example[test_it: run] PASSED" in said


@pytest.mark.parametrize(
    ("confirm", "outcome"),
    amounts.sample([(True, "SKIPPED"), ({"fallback": "allow"}, "PASSED"), ({"fallback": "refuse"}, "SKIPPED")], 2),
)
def test_a_tool_that_needs_leave_is_left_alone(confirm: Any, outcome: str, tmp_path: Path) -> None:
    status, said = run(tmp_path, case({"input": {"n": 1}}, ours={"policy": {"confirm": confirm}}))
    assert status == 0, said
    assert f"test_example[test_it: example 1] {outcome}" in said


@pytest.mark.long
def test_the_environment_names_other_handlers(tmp_path: Path) -> None:
    value = case({"input": {"n": 1}, "output": {"n": 100}, "exact": True})
    assert run(tmp_path, value, SAMPLE_MCP_HANDLERS="logic:Other")[0] == 0
    assert run(tmp_path, value)[0] == 1


@pytest.mark.parametrize(
    ("handlers", "message"),
    amounts.sample(
        [
            ("logic", "SAMPLE_MCP_HANDLERS must be MODULE:NAME, such as weather:Weather, not 'logic'"),
            ("nowhere:Sample", "no module 'nowhere'"),
            ("logic:Needy", "cannot call logic:Needy: TypeError"),
            (None, "no handlers specified; set them, for example with SAMPLE_MCP_HANDLERS=weather:Weather"),
        ],
        1,
    ),
)
def test_handlers_that_cannot_be_had_fail(handlers: str | None, message: str, tmp_path: Path) -> None:
    value = case({"input": {"n": 1}})
    if handlers is None:
        del value["python"]
    status, said = run(tmp_path, value, **({"SAMPLE_MCP_HANDLERS": handlers} if handlers else {}))
    assert status == 1
    assert message in said


@pytest.mark.parametrize(
    ("examples", "emit", "has_tests"),
    [([{"input": {}}], ["server"], True), ([{"input": {}}], ["client"], False), ([], ["server"], False)],
)
def test_only_a_server_with_examples_has_tests(
    examples: list[Any], emit: list[str], has_tests: bool, tmp_path: Path
) -> None:
    package = generate(tmp_path, manifest([tool("ping", stubwright={"examples": examples})], emit=emit))
    assert (tmp_path / f"test_{package}.py").exists() == has_tests
    assert not [*(tmp_path / package).rglob("test_*.py")]  # what a wheel installs


def test_nothing_needs_pytest_but_pytest(tmp_path: Path) -> None:
    package = generate(tmp_path, case({"input": {"n": 1}}))
    program = f"import sys; import test_{package}; sys.exit('pytest' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)


@pytest.mark.long
def test_the_examples_of_the_committed_servers_hold() -> None:
    """As a user runs them: with whatever plugins pytest finds."""
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "-W", "error"]
    done = subprocess.run(
        [*command, *(f"generated/test_{name}_mcp.py" for name in ("weather", "helpdesk", "database"))],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "generated"), str(ROOT / "examples")])},
        capture_output=True,
        text=True,
        check=False,
    )
    outcomes = re.findall(r"test_(\w+)_mcp\.py (\S+)", done.stdout)
    assert outcomes == [("weather", "."), ("helpdesk", "....."), ("database", "...")], done.stdout
