"""The completion scripts in real shells: commands, options, choices and files."""

from __future__ import annotations

import os
import pty
import select
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from stubwright import cli

LINES = {
    "stubwright gen": {"generate"},
    "stubwright import ": {"mcp", "openapi", "tools"},
    "stubwright check --fi": {"--fix"},
    "stubwright --quiet check --format ": {"text", "json", "github"},
    "stubwright check --strict --color ": {"auto", "always", "never"},
    "stubwright generate --emit ": {"server", "client", "typescript"},
    "stubwright completion z": {"zsh"},
    "stubwright call --header ": set(),
    "stubwright call own-a.yaml ": {"first_tool", "second_tool"},
    "stubwright call own-": {"own-a.yaml", "own-b.yaml"},
    "stubwright check own-": {"own-a.yaml", "own-b.yaml"},
    "stubwright generate own-a.yaml own-b": {"own-b.yaml"},
    "stubwright verify own-b": {"own-b.yaml"},
    "stubwright lock --config own-": {"own-a.yaml", "own-b.yaml"},
}


def _complete_in_bash(script: Path, line: str) -> list[str]:
    words = line.split(" ")
    program = f"""
source {shlex.quote(str(script))}
function_=$(complete -p stubwright); function_=${{function_##*-F }}; function_=${{function_%% *}}
COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}; COMP_LINE={shlex.quote(line)}; COMP_POINT={len(line)}
$function_ stubwright {shlex.quote(words[-1])} {shlex.quote(words[-2])}
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    return _run("bash", "--norc", "-c", program)


def _complete_in_fish(script: Path, line: str) -> list[str]:
    program = f"source {shlex.quote(str(script))}; complete --do-complete {shlex.quote(line)}"
    return [row.partition("\t")[0] for row in _run("fish", "--no-config", "-c", program)]


def _complete_in_zsh(script: Path, line: str) -> list[str]:
    """Press Tab in an interactive shell, whose `compadd` writes the matches to a file."""
    matches = script.with_name("matches")
    setup, dump = script.with_name("setup.zsh"), script.with_name("dump")
    setup.write_text(f"""
autoload -Uz compinit && compinit -u {"-C" if dump.exists() else ""} -d {shlex.quote(str(dump))}
source {shlex.quote(str(script))}
compadd() {{
  local -a hits
  [[ " $* " == *" -"[ADO]" "* ]] || {{ builtin compadd -A hits "$@"; print -rl -- $hits >>{matches} }}
  builtin compadd "$@"
}}
finish() {{ exit }}
zle -N finish
bindkey '^O' finish
print ready
""")
    terminal, inner = pty.openpty()
    shell = subprocess.Popen(["zsh", "-f", "-i"], stdin=inner, stdout=inner, stderr=inner, start_new_session=True)
    os.close(inner)
    try:
        os.write(terminal, f"source {shlex.quote(str(setup))}\n".encode())
        _read_until(terminal, b"ready\r")
        os.write(terminal, f"{line}\t\x0f".encode())
        assert b"not found" not in _read_until(terminal, None)
    finally:
        shell.kill()
        shell.wait()
        os.close(terminal)
    return matches.read_text().split("\n") if matches.exists() else []


def _read_until(terminal: int, mark: bytes | None) -> bytes:
    """Return what a terminal shows until the mark, or until its program ends."""
    seen = b""
    while mark is None or mark not in seen:
        if not select.select([terminal], [], [], 30)[0]:
            raise TimeoutError(seen)
        try:
            data = os.read(terminal, 4096)
        except OSError:  # the program has ended
            data = b""
        if not data:
            break
        seen += data
    return seen


def _run(*command: str) -> list[str]:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert not done.stderr, done.stderr
    return done.stdout.splitlines()


WORDS = """#!/bin/sh
for line; do :; done
[ "$1 $line" != "complete-words stubwright call own-a.yaml " ] || printf 'first_tool\\nsecond_tool\\n'
"""
SHELLS = {"bash": _complete_in_bash, "zsh": _complete_in_zsh, "fish": _complete_in_fish}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes_commands_options_choices_and_files(
    shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")  # as on CI
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in ("own-a.yaml", "own-b.yaml"):
        (folder / name).touch()
    program = tmp_path / "stubwright"  # which lists the tools without the cost of a real process
    program.write_text(WORDS)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    script = tmp_path / "script"
    assert cli.run(["completion", shell]) == 0
    script.write_text(capsys.readouterr().out)
    found = {}
    for line in LINES:
        (tmp_path / "matches").unlink(missing_ok=True)
        found[line] = {each.strip() for each in SHELLS[shell](script, line)} - {""}
    assert found == LINES
