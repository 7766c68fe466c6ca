"""`@pytest.mark.contract`: a test for each check, in separate runs of pytest."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import pytest

import amounts
import forked
from stubwright.contract_tests.checks import CHECKS, OF_CALLS

pytest_plugins = ["pytester"]

FAULTY: Final = str(Path(__file__).parents[1] / "support" / "faulty_server.py")
STRICT: Final = ("-p", "no:asyncio", "-W", "error", "--strict-markers")
MODULE: Final = """
import pytest

ran = []

@pytest.mark.contract({target!r}, cases=12{options})
def test_server():
    ran.append(1)
"""

OLD: Final = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        results = {
            "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                           "serverInfo": {"name": "old", "version": "1"}},
            "tools/list": {"tools": []},
        }
        known = message["method"] in results
        answer = {"result": results[message["method"]]} if known else {"error": {"code": -32601, "message": "no"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"""


@pytest.fixture(autouse=True)
def _forked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have what the plug-in starts forked: `stubwright test`, and the server from there."""
    monkeypatch.setattr(sys, "executable", str(forked.interpreter_in(tmp_path)))


def write(pytester: pytest.Pytester, *tools: str, options: str = "", target: object = None) -> None:
    pytester.makepyfile(MODULE.format(target=target or [sys.executable, FAULTY, *tools], options=options))


def run(pytester: pytest.Pytester, *words: str) -> pytest.RunResult:
    return pytester.runpytest_inprocess(*STRICT, *words)


def start(pytester: pytest.Pytester, *words: str) -> pytest.RunResult:
    """Run the same in a separate process."""
    return pytester.runpytest_subprocess(*STRICT, *words)


def test_each_check_is_a_test_and_a_failure_shows_the_fault_and_its_call(pytester: pytest.Pytester) -> None:
    write(pytester, "misfit")
    result = run(pytester, "-k", "not unknown-tool-is-refused")
    result.assert_outcomes(passed=len(CHECKS) - 4, failed=1, skipped=2, deselected=1)
    result.stdout.fnmatch_lines(
        [
            "*test_server?result-fits-output-schema?*",
            "tool `misfit`: count: expected an integer, got the string *many* (* calls)",
            "    stubwright call misfit '{\"number\": 11}' -- *faulty_server.py misfit",
            "    MCP 2025-06-18, server/tools, Output Schema (MUST)",
        ]
    )


def test_warnings_fail_with_strict_alone(pytester: pytest.Pytester) -> None:
    write(pytester, "good")
    chosen = ("-k", "unknown-cursor-is-refused")
    run(pytester, *chosen).assert_outcomes(passed=1, deselected=len(CHECKS) - 1)
    write(pytester, "good", options=", strict=True")
    run(pytester, *chosen).assert_outcomes(failed=1, deselected=len(CHECKS) - 1)


@pytest.mark.long
def test_hints_are_checked_with_a_probe_alone(pytester: pytest.Pytester) -> None:
    write(pytester, "good")
    chosen = ("-rs", "-k", "read-only-changes-nothing")
    result = run(pytester, *chosen)
    result.assert_outcomes(skipped=1, deselected=len(CHECKS) - 1)
    result.stdout.fnmatch_lines(["SKIPPED*this check requires `probe`*"])
    write(pytester, "good", options=", probe='good {\"number\": 1}'")
    run(pytester, *chosen).assert_outcomes(passed=1, deselected=len(CHECKS) - 1)


@pytest.mark.long
def test_checks_of_calls_are_skipped_if_no_tool_may_be_called(pytester: pytest.Pytester) -> None:
    write(pytester, "erase")
    result = run(pytester, "-rs", "-k", " or ".join(check.name for check in OF_CALLS))
    result.assert_outcomes(skipped=len(OF_CALLS), deselected=len(CHECKS) - len(OF_CALLS))
    result.stdout.fnmatch_lines(["SKIPPED*no tool was called: it does not declare `readOnlyHint: true`*"])
    assert not (pytester.path / "erased").exists()
    write(pytester, "erase", options=", allow_writes=True")
    run(pytester, "-k", "result-is-well-formed").assert_outcomes(passed=1, deselected=len(CHECKS) - 1)
    assert (pytester.path / "erased").exists()


def test_rules_of_later_revisions_are_skipped(pytester: pytest.Pytester) -> None:
    (pytester.path / "old.py").write_text(OLD)
    write(pytester, target=[sys.executable, "old.py"])
    result = run(pytester, "-rs", "-k", "tool-names or tools-are-declared")
    result.assert_outcomes(passed=1, skipped=1, deselected=len(CHECKS) - 2)
    result.stdout.fnmatch_lines(["SKIPPED*MCP 2025-06-18 does not have this rule"])


@pytest.mark.parametrize("options", [(), pytest.param(("-n", "2", "--dist", "loadfile"), marks=pytest.mark.long)])
def test_a_mark_on_a_class_is_for_each_function_and_the_server_is_tested_once(
    options: tuple[str, ...], pytester: pytest.Pytester
) -> None:
    counting = f"open('starts', 'a').write('x'); import runpy; runpy.run_path({FAULTY!r}, run_name='__main__')"
    command = [sys.executable, "-c", f"import sys; sys.argv[1:] = ['good']; {counting}"]
    pytester.makepyfile(f"""
        import pytest

        @pytest.mark.contract({command!r}, cases=10, seed=7, deadline="5s", tools=["g*"])
        class TestServer:
            def test_one(self):
                pass

            def test_two(self):
                raise LookupError("not so far")

        def test_without():
            pass
        """)
    selected = (*options, "-k", "good or answers-in-time or server-survives or without")
    result = start(pytester, *selected) if options else run(pytester, *selected)
    result.assert_outcomes(passed=3, failed=2)
    assert (pytester.path / "starts").read_text() == "x"


@pytest.mark.parametrize(
    ("target", "options", "message"),
    amounts.sample(
        [
            ("specs/none.yaml", "", "the server was not tested: *specs/none.yaml*"),
            (
                [sys.executable, "-c", "raise SystemExit(4)"],
                "",
                "the server was not tested: *exited with status 4*",
            ),
            ("specs/none.yaml", ", case=3", "*@pytest.mark.contract has no option `case`"),
            (7, ", scopes='read'", "*@pytest.mark.contract: `scopes` must be a list, as in ?'read'?"),
            (7, "", "*@pytest.mark.contract requires a manifest, a contract, a URL, or a command as a list"),
        ],
        1,
    ),
)
def test_a_server_that_cannot_be_tested_is_no_success(
    pytester: pytest.Pytester, target: object, options: str, message: str
) -> None:
    write(pytester, target=target, options=options)
    result = run(pytester, "-k", "server-survives")
    assert result.ret != 0
    assert result.parseoutcomes().get("passed", 0) == 0
    result.stdout.fnmatch_lines([message])


def test_a_method_of_unittest_is_refused_and_not_passed_over(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import unittest
        import pytest

        class TestServer(unittest.TestCase):
            @pytest.mark.contract("specs/weather.yaml")
            def test_one(self):
                pass
        """)
    result = run(pytester)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*@pytest.mark.contract requires a pytest function, and test_one is not one"])


@pytest.mark.long
def test_the_server_of_a_manifest_passes(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path(__file__).parents[2]
    write(pytester, target=str(root / "specs" / "weather.yaml"))
    monkeypatch.chdir(root)
    result = run(pytester, "--rootdir", str(root), str(pytester.path))
    outcomes = result.parseoutcomes()
    assert (outcomes["passed"], set(outcomes) <= {"passed", "skipped"}) == (
        len(CHECKS) - outcomes.get("skipped", 0),
        True,
    )


@pytest.mark.parametrize(
    ("options", "outcome"),
    [
        amounts.mark_long(("", "skipped")),
        (", scopes=['db:read'], tools=['list_tables'], handlers='database:Databases', env={'ANY': '1'}", "passed"),
    ],
)
def test_the_caller_has_scopes_and_the_server_handlers(
    options: str, outcome: str, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Path(__file__).parents[2]
    monkeypatch.chdir(root)
    chosen = ("-k", "valid-is-no-protocol-error", "--rootdir", str(root), str(pytester.path))
    write(pytester, target=str(root / "specs" / "database.yaml"), options=options)
    assert run(pytester, *chosen).parseoutcomes()[outcome] == 1


@pytest.mark.long
def test_nothing_of_the_compiler_is_imported_unless_the_mark_is_used(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import sys

        def test_modules():
            loaded = {name for name in sys.modules if name.partition(".")[0] in ("stubwright", "stubwright_runtime")}
            assert loaded == {"stubwright", "stubwright.pytest_plugin"}
        """)
    start(pytester).assert_outcomes(passed=1)


def test_the_mark_is_registered_with_its_options(pytester: pytest.Pytester) -> None:
    result = run(pytester, "--markers")
    result.stdout.fnmatch_lines(["@pytest.mark.contract(target, [*], tools, cases, seed, allow_writes, probe, *"])


def test_a_pattern_that_no_tool_fits_is_no_pass(pytester: pytest.Pytester) -> None:
    write(pytester, "good", options=", tools=['go*', 'goood']")
    result = run(pytester, "-k", "tool-names")
    result.assert_outcomes(failed=1, deselected=len(CHECKS) - 1)
    result.stdout.fnmatch_lines(["the server was not tested: *no tool matches `goood`; did you mean `good`?"])


def test_a_manifest_may_be_a_path(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        from pathlib import Path

        import pytest

        @pytest.mark.contract(Path("specs") / "missing.yaml")
        def test_server(): ...
    """)
    result = run(pytester, "-k", "tool-names")
    result.assert_outcomes(failed=1, deselected=len(CHECKS) - 1)
    result.stdout.fnmatch_lines(["*specs/missing.yaml` does not exist"])


def test_a_wrong_mark_is_told_without_the_frames_of_pytest(pytester: pytest.Pytester) -> None:
    write(pytester, "good", options=", tols=['good']")
    result = run(pytester)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*@pytest.mark.contract has no option `tols`"])
    result.stdout.no_fnmatch_line("*pytest_plugin.py*")
