"""Compares the verdicts of `stubwright verify` and its peers on two versions of the same public server.

    python bench/contract.py [--folder FOLDER] [--only NAME] [--update]

`contract_pairs.json` has the pairs, each judged by hand from both lists of tools. A `breaking` pair has a witness: a
removed tool, arguments that only the old input schema accepts, or a result that only the new output schema accepts.
Installs both versions and the peers from npm and PyPI in a temporary folder or in FOLDER, lists the tools, checks the
witness with `jsonschema`, locks the old version and checks the new version with each program, and prints the table in
README.md. Servers run in a separate folder and home, without a network if `unshare` can remove it.

The lists are third-party text, so the file has only their digests. If a digest changes, the run fails, because the pair
must be judged again; `--update` writes the new digests. Omits peers that cannot be installed. Needs Node.js 20, npm
and uv.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shlex
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, validators

from public_servers import NotInstalledError, Server, find_isolation, furnish, make_variables, run

PAIRS = Path(__file__).with_name("contract_pairs.json")
STUBWRIGHT = Path(sys.executable).with_name("stubwright")
PATIENCE = 90
"""Seconds for one command or one list of tools."""

ORDER = ("breaking", "may break", "degraded", "compatible", "words")
"""The kinds of changes, the worst first. A pair has the kind of its worst change."""

Json = Any
Command = Sequence[str]


@dataclass(frozen=True, slots=True)
class Checker:
    """A program that locks a server's tools and compares them with another version.

    Attributes:
        name: Its name in the table.
        package: The package to install; `None` if it is already installed.
        lock: Returns its arguments for a server's command that write the tools into the working folder.
        check: Returns its arguments for a server's command that compare its tools with that file.
        read: Yields the kind of each change, a word of `ORDER`, from the JSON output of `check`.
    """

    name: str
    package: Server | None
    lock: Callable[[Command], Command]
    check: Callable[[Command], Command]
    read: Callable[[Json], Iterable[str]]


def _read_stubwright(report: Json) -> Iterator[str]:
    comparison = report["contracts"][0]["comparison"]
    for change in comparison["changes"] if comparison else ():
        if change["subject"].startswith("tool "):
            yield change["impact"]


def _read_mcp_contract(report: Json) -> Iterator[str]:
    words = {"additive": "compatible", "routing": "words"}
    for change in report["changes"]:
        if change["tool"] != "(server)" and not change["kind"].startswith("prompt"):
            yield words.get(change["severity"], change["severity"])


def _read_covenant(report: Json) -> Iterator[str]:
    for change in report:
        yield "words" if change["location"] == "description" else change["tier"]


def _read_mcp_diff(report: Json) -> Iterator[str]:
    words = {"warning": "words", "info": "compatible"}  # warnings concern only descriptions
    for change in report:
        yield words.get(change["severity"], change["severity"])


CHECKERS = (
    Checker(
        "stubwright",
        None,
        lambda server: ["lock", "-o", "contract.yaml", "--", *server],
        lambda server: ["verify", "contract.yaml", "--format", "json", "--", *server],
        _read_stubwright,
    ),
    Checker(
        "mcp-contract",
        Server("PyPI", "mcp-contract", "0.6.0"),
        lambda server: ["snapshot", "--quiet", "--", *server],
        lambda server: ["check", "--json", "--", *server],
        _read_mcp_contract,
    ),
    Checker(
        "Covenant",
        Server("PyPI", "covenant-mcp", "0.2.0", program="covenant"),
        lambda server: ["snapshot", "--server", shlex.join(server)],
        lambda server: ["check", "--json", "--server", shlex.join(server)],
        _read_covenant,
    ),
    Checker(
        "mcp-diff",
        Server("PyPI", "mcp-diff", "0.1.0"),
        lambda server: ["snapshot", "-o", "mcp-schema.lock", *server],
        lambda server: ["check", "-l", "mcp-schema.lock", "--json", *server],
        _read_mcp_diff,
    ),
)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two versions of a server with a manual verdict. `data` is the entry in the file."""

    data: dict[str, Any]

    @property
    def name(self) -> str:
        """Its name in the table."""
        return f"`{self.data['package']}` {self.data['old']} → {self.data['new']}"

    @property
    def verdict(self) -> str:
        """Its verdict: `breaking`, `compatible`, `words` or `same`."""
        return str(self.data["verdict"])

    @property
    def versions(self) -> tuple[Server, Server]:
        """The old and the new version."""
        old, new = (self._make_server(side) for side in ("old", "new"))
        return old, new

    def _make_server(self, side: str) -> Server:
        data = self.data
        extra = data.get("extra", {}).get(side, "")
        names = (data["registry"], data["package"], data[side])
        return Server(*names, data.get("arguments", ()), data.get("program", ""), extra=extra)

    def find_problems(self, old: Mapping[str, Json], new: Mapping[str, Json]) -> Iterator[str]:
        """Yield contradictions to the verdict in the tools of both versions, by name."""
        if (self.verdict == "same") != (old == new):
            yield f"the verdict is `{self.verdict}`, while the lists are {'the same' if old == new else 'different'}"
        if self.verdict == "words" and _remove_words(old) != _remove_words(new):
            yield "other keywords than descriptions changed"
        if self.verdict != "breaking":
            if old.keys() - new.keys():
                yield f"tools were removed: {', '.join(sorted(old.keys() - new.keys()))}"
            return
        witness = self.data["witness"]
        tool = witness["tool"]
        if "arguments" in witness:
            accepting, refusing = old[tool]["inputSchema"], new[tool]["inputSchema"]
        elif "result" in witness:
            accepting, refusing = new[tool]["outputSchema"], old[tool]["outputSchema"]
        else:
            if tool not in old or tool in new:
                yield f"the tool `{tool}` was not removed"
            return
        value = witness.get("arguments", witness.get("result"))
        if not _accepts(accepting, value) or _accepts(refusing, value):
            yield f"the witness for `{tool}` does not show a break"


def _accepts(schema: Json, value: Json) -> bool:
    return bool(validators.validator_for(schema, default=Draft202012Validator)(schema).is_valid(value))


def _remove_words(value: Json) -> Json:
    if isinstance(value, dict):
        return {
            key: _remove_words(inner)
            for key, inner in value.items()
            if key not in ("title", "description") or not isinstance(inner, str)
        }
    return [_remove_words(item) for item in value] if isinstance(value, list) else value


def main() -> int:
    """Compare the pairs, print the table, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="folder for installed packages; reuses existing ones")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="compare only this package")
    parser.add_argument("--update", action="store_true", help="write the digests of the lists into the data")
    arguments = parser.parse_args()
    entries = json.loads(PAIRS.read_text("utf-8"))
    pairs = [Pair(entry) for entry in entries if not arguments.only or entry["package"] in arguments.only]
    problems: list[str] = []
    rows: list[tuple[Pair, list[str]]] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = (arguments.folder or Path(temporary)).resolve()
        checkers = list(_install_checkers(folder, problems))
        for pair in pairs:
            try:
                cells, digests = _compare(pair, checkers, folder, problems)
            except NotInstalledError as error:
                problems.append(f"{pair.name}: omitted: {error}")
                continue
            rows.append((pair, cells))
            if arguments.update:
                pair.data["digests"] = digests
            elif pair.data["digests"] != digests:
                problems.append(f"{pair.name}: the lists changed; judge the pair again")
    if arguments.update:
        PAIRS.write_text(json.dumps(entries, indent=2, ensure_ascii=False) + "\n", "utf-8")
    print("\n".join(_make_table([checker for checker, _ in checkers], rows)))
    print("\n".join(["", *problems]) if problems else "", end="")
    return 1 if problems else 0


def _install_checkers(folder: Path, problems: list[str]) -> Iterator[tuple[Checker, Path]]:
    for checker in CHECKERS:
        try:
            yield checker, checker.package.install(folder) if checker.package else STUBWRIGHT
        except NotInstalledError as error:
            problems.append(f"{checker.name}: omitted: {error}")


def _compare(
    pair: Pair, checkers: Sequence[tuple[Checker, Path]], folder: Path, problems: list[str]
) -> tuple[list[str], list[str]]:
    """Return the verdict of each program on a pair, and the digests of the lists. Raises NotInstalledError."""
    commands = [[str(version.install(folder)), *version.arguments] for version in pair.versions]
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        furnish(home)
        old, new = ({tool["name"]: tool for tool in _list_tools(command, home)} for command in commands)
        problems += (f"{pair.name}: {problem}" for problem in pair.find_problems(old, new))
        cells = []
        for checker, program in checkers:
            try:
                cells.append(_ask(checker, program, commands, home))
            except (NotInstalledError, ValueError) as error:
                problems.append(f"{pair.name}: {checker.name} fails: {str(error)[-300:]}")
                cells.append("fails")
    return cells, [_digest(old), _digest(new)]


def _ask(checker: Checker, program: Path, commands: Sequence[Command], home: Path) -> str:
    """Return the verdict of a program. Raises NotInstalledError, or ValueError if there is no verdict."""
    before = [*find_isolation(), str(program)]
    run([*before, *checker.lock(commands[0])], PATIENCE, home)
    changes = {*checker.read(json.loads(run([*before, *checker.check(commands[1])], PATIENCE, home, (0, 1))))}
    return next((impact for impact in ORDER if impact in changes), "same")


def _list_tools(command: Command, home: Path) -> Sequence[Json]:
    """Return the tools that a server lists, unmodified. Raises NotInstalledError if it does not respond."""
    server = subprocess.Popen(
        [*find_isolation(), *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=home,
        env=make_variables(home),
    )
    assert server.stdin is not None
    assert server.stdout is not None
    timer = threading.Timer(PATIENCE, server.kill)
    timer.start()

    def send(message: Mapping[str, Json]) -> None:
        server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        server.stdin.flush()

    def ask(number: int, method: str, parameters: Mapping[str, Json]) -> Json:
        send({"id": number, "method": method, "params": parameters})
        for line in server.stdout:
            if line.startswith("{") and (message := json.loads(line)).get("id") == number and "result" in message:
                return message["result"]
        raise NotInstalledError(f"{command[0]} does not answer `{method}`")

    try:
        client = {"name": "bench", "version": "1.0.0"}
        ask(0, "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client})
        send({"method": "notifications/initialized"})
        page = ask(1, "tools/list", {})
        tools = [*page["tools"]]
        while cursor := page.get("nextCursor"):
            page = ask(len(tools) + 1, "tools/list", {"cursor": cursor})
            tools += page["tools"]
        return tools
    finally:
        timer.cancel()
        server.kill()
        server.wait()


def _digest(tools: Mapping[str, Json]) -> str:
    text = json.dumps(tools, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _make_table(checkers: Sequence[Checker], rows: Sequence[tuple[Pair, Sequence[str]]]) -> Iterator[str]:
    """Yield the lines of the table, with verdicts that differ from the manual verdict in bold."""
    names = (f"{each.name} {each.package.version}" if each.package else each.name for each in checkers)
    yield f"| pair | judged | {' | '.join(names)} |"
    yield f"|---|---|{'---|' * len(checkers)}"
    for pair, cells in rows:
        marked = (cell if cell == pair.verdict else f"**{cell}**" for cell in cells)
        yield f"| {pair.name} | {pair.verdict} | {' | '.join(marked)} |"
    for title, is_right in (
        ("the judged verdict", lambda verdict, cell: verdict == cell),
        ("breaking or not", lambda verdict, cell: (verdict == "breaking") == (cell == "breaking") and cell != "fails"),
    ):
        counts = (sum(is_right(pair.verdict, cells[at]) for pair, cells in rows) for at in range(len(checkers)))
        yield f"| right: {title} | {len(rows)} | {' | '.join(map(str, counts))} |"


if __name__ == "__main__":
    sys.exit(main())
