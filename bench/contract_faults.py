"""Lists the faults that `stubwright test` finds in public servers that start without credentials.

    python bench/contract_faults.py [--folder FOLDER] [--only NAME] [--json FILE]

Installs each server of `SERVERS` from npm or PyPI in a temporary folder or in FOLDER, and tests it in a separate folder
and home, without a network if `unshare` can remove it. Calls only tools with `readOnlyHint: true`, except on servers
that cannot write outside their folder. Prints the table in bench/README.md, followed by each error that `JUDGED` does
not explain. The run fails if there is such an error, because a person must read it first. Needs Node.js 20, npm and
uv.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from public_servers import NotInstalledError, Server, find_isolation, furnish, run

STUBWRIGHT = Path(sys.executable).with_name("stubwright")
LIMITS = ("--budget", "40s", "--cases", "20")
TESTING = 240
"""Seconds to start, test and stop a server."""


SERVERS = (
    Server(
        "npm",
        "@modelcontextprotocol/server-everything",
        "2026.8.31",
        program="mcp-server-everything",
        writes=True,
        deadline=15,
    ),
    Server("npm", "@modelcontextprotocol/server-memory", "2026.8.31", program="mcp-server-memory", writes=True),
    Server(
        "npm", "@modelcontextprotocol/server-filesystem", "2026.8.31", ["notes"], "mcp-server-filesystem", writes=True
    ),
    Server(
        "npm",
        "@modelcontextprotocol/server-sequential-thinking",
        "2026.8.31",
        program="mcp-server-sequential-thinking",
        writes=True,
    ),
    Server("npm", "@upstash/context7-mcp", "4.1.1", program="context7-mcp"),
    Server("npm", "@playwright/mcp", "0.0.83", program="playwright-mcp"),
    Server("npm", "@antv/mcp-server-chart", "0.9.10", program="mcp-server-chart"),
    Server("npm", "@angular/cli", "21.2.27", ["mcp"], "ng"),
    Server("npm", "chrome-devtools-mcp", "1.11.0"),
    Server("npm", "@eslint/mcp", "0.3.13", program="mcp"),
    Server("npm", "nx-mcp", "0.25.0"),
    Server("npm", "next-devtools-mcp", "0.4.0"),
    Server("npm", "@cyanheads/git-mcp-server", "2.15.3", program="git-mcp-server"),
    Server("npm", "bazi-mcp", "0.1.0", writes=True),
    Server("npm", "@sylphlab/pdf-reader-mcp", "0.3.23", program="pdf-reader-mcp", writes=True),
    Server("npm", "@coo-quack/calc-mcp", "2.1.1", program="calc-mcp", writes=True),
    Server("npm", "time-mcp", "1.0.6", writes=True),
    Server("PyPI", "mcp-server-time", "2026.10.19", writes=True),
    Server("PyPI", "mcp-server-fetch", "2026.10.24", writes=True),
    Server("PyPI", "mcp-server-git", "2026.10.19", ["--repository", "repository"]),
    Server("PyPI", "mcp-server-calculator", "0.2.1", writes=True),
    Server("PyPI", "mcp-server-sqlite", "2025.4.25", ["--db-path", "data.db"], writes=True, extra="mcp<2"),
    Server("PyPI", "arxiv-mcp-server", "0.8.2"),
    Server("PyPI", "wikipedia-mcp", "2.0.1"),
    Server("PyPI", "duckduckgo-mcp-server", "0.7.0"),
    Server("PyPI", "excel-mcp-server", "2.2.2", ["stdio"]),
    Server("PyPI", "mcp-simple-timeserver", "3.3.2"),
    Server("PyPI", "unit-converter-mcp", "0.1.2", writes=True),
    Server("PyPI", "mcp-simple-arxiv", "0.6.0"),
    Server("PyPI", "office-word-mcp-server", "1.1.11", program="word_mcp_server"),
    Server("PyPI", "mcp-server-tree-sitter", "0.7.0", extra="mcp<2"),
    Server("PyPI", "mcp-server-duckdb", "1.1.0", ["--db-path", "data.duckdb"], writes=True, extra="mcp<2"),
    Server("PyPI", "code-index-mcp", "2.17.1"),
)

JUDGED: Mapping[tuple[str, str], str] = {
    (
        "@antv/mcp-server-chart",
        "valid-is-no-protocol-error",
    ): "reports an unavailable service as a protocol error, not as a result",
    (
        "@angular/cli",
        "result-fits-output-schema",
    ): "omits two required lists outside a workspace",
    ("nx-mcp", "valid-is-no-protocol-error"): "reports an unavailable service as a protocol error, not as a result",
    ("bazi-mcp", "sends-only-messages"): "prints a greeting to stdout",
    ("@sylphlab/pdf-reader-mcp", "sends-only-messages"): "prints its log to stdout",
    ("@sylphlab/pdf-reader-mcp", "schemas-are-valid"): "`exclusiveMinimum: true` is draft 4; a number is required",
    ("time-mcp", "sends-only-messages"): "prints a greeting to stdout",
    ("mcp-server-sqlite", "unknown-tool-is-refused"): "answers `Error: Missing arguments`, not marked as an error",
    ("mcp-server-duckdb", "unknown-tool-is-refused"): "answers `Error: Missing arguments`, not marked as an error",
    ("mcp-simple-timeserver", "invalid-is-refused"): "accepts `true` as the year 1",
    ("unit-converter-mcp", "invalid-is-refused"): "accepts `true` as the number 1",
    ("office-word-mcp-server", "invalid-is-refused"): "accepts `true` as the number 1, and rejects other types",
}
"""Why the errors of a check are the server's fault, by package and check; written by a person who read the output."""


def main() -> int:
    """Test the servers, print the findings, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="folder for installed packages; reuses existing ones")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="test only this package")
    parser.add_argument("--json", type=Path, metavar="FILE", help="store reports here; reuse existing reports")
    arguments = parser.parse_args()
    reports = json.loads(arguments.json.read_text()) if arguments.json and arguments.json.exists() else {}
    servers = [server for server in SERVERS if not arguments.only or server.package in arguments.only]
    with tempfile.TemporaryDirectory() as temporary:
        folder = (arguments.folder or Path(temporary)).resolve()
        for server in servers:
            if server.package not in reports:
                reports[server.package] = _test(server, folder)
                if arguments.json:
                    arguments.json.write_text(json.dumps(reports, indent=1))
    print("\n".join(_make_table(servers, reports)))
    unjudged = [
        f"{server.package}: {fault['check']}: {fault['message']}\n    {fault['call'] or server.command}"
        for server in servers
        for fault in _find_errors(reports[server.package])
        if (server.package, fault["check"]) not in JUDGED
    ]
    print("\n".join(["", "To be judged:", *unjudged]) if unjudged else "", end="")
    return 1 if unjudged else 0


def _make_table(servers: Sequence[Server], reports: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of the section: a row for each check with errors, then the servers without errors."""
    tested = [server for server in servers if "problem" not in reports[server.package]]
    faulty = [server for server in tested if _find_errors(reports[server.package])]
    yield "| server | called, of | calls | error | the smallest call | judged |"
    yield "|---|---|---|---|---|---|"
    for server in faulty:
        report = reports[server.package]
        counts = Counter(fault["check"] for fault in _find_errors(report))
        for check, count in counts.items():
            call = next(fault["call"] for fault in _find_errors(report) if fault["check"] == check)
            tools = f" ({count} tools)" if count > 1 else ""
            line = call or f"stubwright test -- {server.command}"
            words = JUDGED.get((server.package, check), "**not judged**")
            yield f"| `{server.package}` {server.version} | {_count(report)} | `{check}`{tools} | `{line}` | {words} |"
    warnings: Counter[str] = Counter()
    for server in tested:
        kinds = {fault["check"] for fault in reports[server.package]["faults"] if fault["severity"] == "warning"}
        warnings.update(kinds)
    yield ""
    rest = [server for server in tested if server not in faulty]
    counted = (
        f"`{each.package}` {each.version} ({_count(reports[each.package]).replace(' | ', ', ')})" for each in rest
    )
    yield f"Servers without an error, with tools called, tools listed, and calls: {', '.join(counted)}."
    yield ""
    yield f"Warnings, by servers: {', '.join(f'`{check}` {count}' for check, count in warnings.most_common())}."
    for server in servers:
        if server not in tested:
            yield f"\nNot tested: {server.package}: {reports[server.package]['problem']}"


def _count(report: Mapping[str, Any]) -> str:
    """Return the table cells: tools called, tools listed, and calls."""
    calls = [tool["valid"] + tool["invalid"] for tool in report["tools"]]
    return f"{sum(count > 0 for count in calls)}/{len(calls)} | {sum(calls)}"


def _find_errors(report: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return [fault for fault in report.get("faults", ()) if fault["severity"] == "error"]


def _test(server: Server, folder: Path) -> dict[str, Any]:
    """Return the report of one server, including its `problem`, if any."""
    try:
        program = server.install(folder)
        with tempfile.TemporaryDirectory() as temporary:
            home = Path(temporary)
            furnish(home)
            command = [str(STUBWRIGHT), "test", "--format", "json", "--deadline", f"{server.deadline}s", *LIMITS]
            command += ["--allow-writes"] if server.writes else []
            command += ["--", str(program), *server.arguments]
            done = run([*find_isolation(), *command], TESTING, home, statuses=(0, 1, 3))
    except NotInstalledError as error:
        return {"problem": str(error)}
    report: dict[str, Any] = json.loads(done)["servers"][0]
    for fault in report.get("faults", ()):
        if fault["call"]:
            fault["call"] = f"{fault['call'].rpartition(' -- ')[0]} -- {server.command}"
    return report


if __name__ == "__main__":
    sys.exit(main())
