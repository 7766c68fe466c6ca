"""Third-party text never reaches a terminal as a control sequence, in any command."""

from __future__ import annotations

import ast
import json
import os
import pty
import re
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import Any

import pytest
import yaml

import amounts
import forked
from packages import generate, manifest, tool
from processes import start_process
from stubwright import package_data
from stubwright.compile.syntax import yamltext, yamlwriter
from stubwright.diagnostics import Diagnostic, Place, Span, printers
from stubwright.diff import printers as changes
from stubwright_runtime.values.terminal import HIDDEN, MARK, replace_controls, to_one_line

ROOTS = (package_data.ROOT, package_data.RUNTIME)

NASTY = "".join(
    [
        "\x1b[2J\x1b]0;title\x07\x1b[8m\x9b31m\x00\x08\x7f\r\x85",
        "\u202e\u2066\u200b\u200e\u2028\u2029\ufeff\u2060\U000e0041",
        "\n::error file=x::forged\n##[error]forged%0A::warning::forged\n2026-01-01 00:00:00,000 INFO root: forged",
    ]
)
PLAIN_ESCAPES = re.compile(r"\x1b\[(?:[0-4]?(?:;?3[0-7])?)m")

VISIBLE_FORMATS = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD, 0x200C, 0x200D}
"""Those of the category Cf that have a shape, and joiners."""


def harmful(text: str) -> list[str]:
    """What should not have come out."""
    return [char for char in text if HIDDEN.match(char) and char not in "\u200c\u200d"]


def test_whatever_cannot_be_seen_is_marked() -> None:
    for code in range(sys.maxunicode + 1):
        char = chr(code)
        if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") and code not in VISIBLE_FORMATS:
            expected = char if char in "\n\t" else MARK
            assert replace_controls(f"a{char}b") == f"a{expected}b", hex(code)
            expected = " " if char in "\n\t\r" else MARK
            assert to_one_line(f"a{char}b") == f"a{expected}b", hex(code)
    assert replace_controls("a\r\nb\tc") == "a\nb\tc"
    for fine in ("👩\u200d💻", "क्\u200dष", "é ü 日本 ❤\ufe0f"):
        assert replace_controls(fine) == to_one_line(fine) == fine
    assert replace_controls("get\u200d_weather") == f"get{MARK}_weather"


def test_one_module_prints() -> None:
    """All else hands its text to `commands.console`; in servers, to the log or to `main`."""
    found: dict[str, set[str]] = {}
    for path in (path for root in ROOTS for path in root.rglob("*.py")):
        name = path.as_posix().rpartition("/stubwright")[2]
        text = path.read_text("utf-8")
        if not re.search(r"\bprint\b|\bsys\s*\.|\blogging\b|\bwarnings\b", text):
            continue  # which is nearly all of the time that this takes
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                streams = {ast.unparse(part) for part in ast.walk(node.func) if isinstance(part, ast.Attribute)}
                if called == "print" or (called.endswith(("write", "writelines")) and "sys." in " ".join(streams)):
                    found.setdefault(name, set()).add(called)
                if called in ("logging.getLogger", "logging.basicConfig", "warnings.showwarning"):
                    found.setdefault(name, set()).add(called)
            others = ("sys.__stdout__", "sys.__stderr__", "logging.StreamHandler")
            if isinstance(node, ast.Attribute) and ast.unparse(node) in others:
                found.setdefault(name, set()).add(ast.unparse(node))
    assert found == {
        "/commands/shared/console.py": {"print"},
        "/importers/live.py": {"logging.getLogger"},  # to silence
        "/serving/proof.py": {"sys.stderr.write"},  # a separate program
        "_runtime/http/calls.py": {"logging.getLogger"},  # to silence
        "_runtime/observability/logs.py": {
            "logging.getLogger",
            "logging.basicConfig",
            "logging.StreamHandler",
        },
        "_runtime/server/main.py": {"sys.stderr.write"},
        "_runtime/tasks/abandoned.py": {"sys.stdout.write", "sys.stderr.write"},  # the command `tasks`
    }


def findings() -> list[Diagnostic]:
    at = Span(f"specs/{NASTY}.yaml", 1, 1, 1, 5)
    return [
        Diagnostic("SW102", f"found {NASTY}", at, f"mend {NASTY}"),
        Diagnostic("SW300", f"warn {NASTY}", Place(NASTY)),
        Diagnostic("SW102", NASTY, None, NASTY),
    ]


def test_diagnostics() -> None:
    text = printers.text.render(findings(), {}, color=False)
    assert not harmful(text)
    assert len(text.splitlines()) == 6
    assert not harmful(PLAIN_ESCAPES.sub("", printers.text.render(findings(), {}, color=True)))
    printed = printers.json.render(findings(), {})
    assert printed.isascii()
    assert not harmful(printed)
    assert NASTY in {row["message"] for row in json.loads(printed)}


def test_no_message_is_a_workflow_command_of_its_own() -> None:
    printed = printers.github.render(findings(), {})
    assert not harmful(printed)
    assert len(printed.splitlines()) == len(findings())
    for row in printed.splitlines():
        head, properties, message = re.fullmatch(r"::(error|warning) ((?:\w+=[^,:]*,?)+)::(.*)", row).groups()  # type: ignore[union-attr]
        assert head in ("error", "warning")
        assert "title=SW" in properties
        assert "forged%250A" in message


def test_differences() -> None:
    old, new = f"a\nb {NASTY}\n".encode(), f"a\nc {NASTY}\n".encode()
    for shown in (
        printers.unified_diff.render(NASTY, old, new),
        printers.unified_diff.render(NASTY, None, b""),
        printers.unified_diff.render(NASTY, old, old + b"\r"),
    ):
        assert not harmful(shown)
    text = changes.format_text([], changes.Comparison(NASTY, NASTY, {}, {}, NASTY, NASTY), color=False)
    assert not harmful(text)
    assert len(text.splitlines()) == 1
    assert not harmful(changes.format_markdown([], changes.Comparison(NASTY, NASTY, {}, {}, NASTY, NASTY)))
    assert changes.format_json([], changes.Comparison(NASTY, NASTY, {}, {}, "1", "1")).isascii()


@pytest.mark.parametrize(
    "form", amounts.sample(["{}", "a{}b", "é{}", "x: {} y", "{}\nline\n", " {} ", "👩{}", "# {}"], 4)
)
def test_imported_text_is_escaped_and_reads_back(form: str) -> None:
    odd = [*NASTY, "\u200d", "\U0001f469\u200d\U0001f4bb", NASTY.replace("\r", "")]
    value: dict[str, Any] = {form.format(one): {"text": form.format(one), "list": [form.format(one)]} for one in odd}
    text = yamlwriter.format_manifest(value)
    assert HIDDEN.search(text) is None
    back, problems = yamltext.parse(text)
    assert not problems
    assert back == value
    assert yaml.safe_load(text) == value
    saved = yamlwriter.format_imported(value, "saved.json")
    assert HIDDEN.search(saved) is None
    assert {key: one for key, one in json.loads(saved).items() if key not in ("x-imported", "x-digest")} == value


def _manifest(folder: Path) -> Path:
    nasty = NASTY.replace("\x00", "")
    value = {
        "stubwright": 1,
        "server": {"name": "odd", "version": "1"},
        "tools": [
            {
                "name": "do",
                "description": nasty,
                "inputSchema": {"type": "object", "properties": {"a": {"type": "string", "titel": nasty, nasty: 1}}},
                nasty: 1,
                "stubwright": {"lint": {"ignore": [nasty]}, "policy": {"redact": [f"/{nasty}"]}},
            }
        ],
    }
    path = folder / "odd\x1b[31m\u202e\nname.json"
    path.write_text(json.dumps(value))
    return path


def _at_a_terminal(command: list[str], folder: Path) -> str:
    """What a command writes to a terminal."""
    ours, theirs = pty.openpty()
    with start_process(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "xterm"}
    ) as process:
        os.close(theirs)
        data = b""
        try:
            while chunk := os.read(ours, 65536):
                data += chunk
        except OSError:  # so Linux reports that there are no more writers
            pass
        process.wait(60)
    os.close(ours)
    return data.decode().replace("\r\n", "\n")  # which the terminal makes of each line's end


def test_commands(tmp_path: Path) -> None:
    path = _manifest(tmp_path)
    value = json.loads(path.read_text())
    del value["tools"][0]["stubwright"]
    value["tools"][0] = {key: one for key, one in value["tools"][0].items() if "forged" not in key}
    fine = tmp_path / "fine.json"
    fine.write_text(json.dumps(value))
    (tmp_path / "tools.json").write_text(json.dumps({"tools": value["tools"]}))
    stubwright = [*forked.interpreter(), "-m", "stubwright"]
    colored = 0
    for arguments in (
        ["check", str(path)],
        ["check", "--format", "json", str(path)],
        ["check", "--format", "github", str(path)],
        ["check", "no\x1b[2J\u202esuch.yaml"],
        ["check", "--no\x1b[2J\x1b[31m\u202esuch", str(path)],
        ["generate", "--check", str(fine)],
        ["generate", "--check", "--format", "github", str(fine)],
        ["import", "tools", "tools.json"],
        ["import", "tools", "no\x1b[2J\u202esuch.json"],
        ["diff", str(fine), str(path)],
        ["diff", "fine.json", "tools.json", "--format", "md"],
        ["diff", "no\x1b[2J\u202esuch", "fine.json"],
        ["new", "no\x1b[2J\u202e"],
        ["mock", "no\x1b[2J\u202e.yaml"],
        ["docs", "no\x1b[2J\u202e.yaml", "-o", "out"],
    ):
        done = forked.run(arguments, tmp_path)
        printed = done.stdout + done.stderr
        assert printed, arguments
        assert not harmful(printed), (arguments, printed)
        assert "Traceback" not in printed, printed
        if arguments[0] in ("check", "diff"):
            shown = _at_a_terminal([*stubwright, *arguments], tmp_path)
            colored += len(PLAIN_ESCAPES.findall(shown))
            assert not harmful(PLAIN_ESCAPES.sub("", shown)), (arguments, shown)
            assert "\x1b[31m\u202e" not in shown
            assert "[2J\x1b[31m" not in shown  # a word of the command line, with the colour that it wants
    assert colored


def test_a_generated_server_says_what_it_is(tmp_path: Path) -> None:
    nasty = NASTY.replace("\x00", "")
    name = generate(tmp_path, manifest([tool("do")], name="odd"))
    path = tmp_path / name / "manifest.json"
    value = json.loads(path.read_text())
    value["server"] |= {"title": nasty, "version": nasty}
    path.write_text(json.dumps(value))
    for arguments in (["--help"], ["--version"], ["--handlers", "no\x1b[2J\u202e:X"], ["--http", "no\x1b[2J\u202e:1"]):
        done = forked.python(["-m", name, *arguments], tmp_path)
        printed = done.stdout + done.stderr
        assert printed
        assert not harmful(printed), (arguments, printed)
        assert "Traceback" not in printed
