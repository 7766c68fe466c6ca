"""Writes the references that come from the code, so that they cannot drift.

They are of the manifest, diagnostics, changes, clients, and checks of servers.

python docs/reference.py [--check]
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stubwright import package_data
from stubwright.contract_tests.checks import CHECKS
from stubwright.diagnostics import CODES
from stubwright.diff import changes
from stubwright.project.clients.table import CLIENTS, Client

HERE = Path(__file__).parent
SCHEMA = package_data.MANIFEST_SCHEMA


def manifest() -> str:
    """The manifest reference: one section for each kind of object."""
    schema = json.loads(SCHEMA.read_text("utf-8"))
    titles = {f"#/$defs/{name}": part.get("title", name) for name, part in schema["$defs"].items()}
    lines = [
        "# The manifest",
        "",
        "This page is generated from the JSON Schema of manifests, which `stubwright schema` prints. Keys that MCP",
        "defines are sent to clients; stubwright's own keys are under `stubwright` and are never sent.",
        "",
        "See also [Shorthand](shorthand.md) for less to write, [State between",
        "calls](handlers.md#state-between-calls) for `handles`, and [Tasks](tasks.md) for `task`.",
    ]
    sections = _Sections(titles)
    lines += sections.of("The whole manifest", schema)
    for name, part in schema["$defs"].items():
        lines += sections.of(_sentence(titles[f"#/$defs/{name}"]), part)
    return "\n".join(lines) + "\n"


def diagnostics() -> str:
    """The diagnostics reference: its words as they are, and a line for each code, errors first."""
    words = (HERE / "diagnostics.md").read_text("utf-8").partition("## Errors\n")[0]
    lines = [words.rstrip()]
    for title, severity in (("Errors", "error"), ("Warnings", "warning")):
        codes = [f"- {code.id}: {code.meaning}" for _, code in sorted(CODES.items()) if code.severity == severity]
        lines += ["", f"## {title}", "", *codes]
    return "\n".join([*lines, ""])


def diff() -> str:
    """The page on `stubwright diff`: its words as they are, and a line for each code."""
    words = (HERE / "diff.md").read_text("utf-8").partition("## Codes\n")[0]
    lines = [words.rstrip(), "", "## Codes"]
    for title, side in (("Wire", "wire"), ("Python", "python")):
        codes = [f"- {code}: {meaning}" for code, (part, meaning) in sorted(changes.CODES.items()) if part == side]
        lines += ["", f"### {title}", "", *codes]
    return "\n".join([*lines, ""])


def serving() -> str:
    """The page on `stubwright dev` and `install`: its words as they are, and one row for each client."""
    words = (HERE / "serving.md").read_text("utf-8").partition("## Clients\n")[0]
    rows = [
        f"| `{client.name}`: {client.title} | {_files(client)} | {_code(client.project)} | `{client.key}` "
        f"| {', '.join(f'[{number}]({source})' for number, source in enumerate(client.sources, 1))} |"
        for client in CLIENTS.values()
    ]
    head = ["| client | file of a user | file of a project | servers in | source |", "|---|---|---|---|---|"]
    return "\n".join([f"{words}## Clients", "", *head, *rows, ""])


def testing() -> str:
    """The page on `stubwright test`: its words as they are, and a line for each check."""
    words = (HERE / "testing-servers.md").read_text("utf-8").partition("## Checks\n")[0]
    lines = [words.rstrip(), "", "## Checks", "", "A report names the source of each rule."]
    for title, severity in (("Errors", "error"), ("Warnings", "warning")):
        checks = [f"- `{check.name}`: {check.meaning}" for check in CHECKS if check.severity == severity]
        lines += ["", f"**{title}**", "", *checks]
    return "\n".join([*lines, ""])


_SYSTEMS = {"darwin": "macOS", "linux": "Linux", "win32": "Windows"}


def _files(client: Client) -> str:
    """The files of a user, which are one or differ by system."""
    files = dict.fromkeys(client.user.values())
    if len(files) == 1:
        return _code(*files)
    return "; ".join(f"{name}: {_code(client.user[system])}" for system, name in _SYSTEMS.items())


def _code(path: str | None) -> str:
    """A path, with variables as shells write their defaults."""
    return "none" if path is None else "`" + re.sub(r"\$\{(\w+):", r"${\1:-", path) + "`"


_FEWEST_SHARED = 5  # keys in common with an earlier section; fewer are repeated


@dataclass(frozen=True, slots=True)
class _Sections:
    """Writes sections; `titles` has the title of each definition by its reference."""

    titles: Mapping[str, str]
    written: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """The properties of each section so far, by its title."""

    def of(self, title: str, part: Mapping[str, Any], *, is_nested: bool = False) -> Iterator[str]:
        """The section of one kind of object, and the sections of the objects in it."""
        yield from ("", f"## {title}", "")
        if not is_nested:  # otherwise the row has the description
            yield part.get("description", "")
        properties = {name: rule for name, rule in part.get("properties", {}).items() if isinstance(rule, dict)}
        if not properties:
            yield f"Written as {self._type(part)}."
            return
        source, shared = self._find_shared(properties)
        self.written[title] = properties
        yield from (*([] if is_nested else [""]), "| key | value | meaning |", "|---|---|---|")
        for name, rule in properties.items():
            if name not in shared:
                required = " (required)" if name in part.get("required", ()) else ""
                yield f"| `{name}`{required} | {_cell(self._type(rule))} | {_cell(_words(rule))} |"
        if shared:
            names = ", ".join(f"`{name}`" for name in shared)
            yield f"| {names} | the same | as in [{_lower(source)}](#{_anchor(source)}) |"
        for name, rule in properties.items():
            if rule.get("properties") and name not in shared:
                yield from self.of(f"`{name}` of {_lower(title)}", rule, is_nested=True)

    def _find_shared(self, properties: Mapping[str, Any]) -> tuple[str, list[str]]:
        """Return the earlier section that has most of the properties unchanged, and their names."""
        shared = {
            title: [name for name, rule in properties.items() if earlier.get(name) == rule]
            for title, earlier in self.written.items()
        }
        title, names = max(shared.items(), key=lambda item: len(item[1]), default=("", []))
        return (title, names) if len(names) >= _FEWEST_SHARED else ("", [])

    def _type(self, rule: Mapping[str, Any] | bool) -> str:
        if isinstance(rule, bool):
            return "anything"
        if "$ref" in rule:
            title = _sentence(self.titles[rule["$ref"]])
            return f"[{_lower(title)}](#{_anchor(title)})"
        if "const" in rule:
            return f"`{json.dumps(rule['const'])}`"
        if "enum" in rule:
            return " or ".join(f"`{json.dumps(value)}`" for value in rule["enum"])
        for keyword in ("oneOf", "anyOf"):
            if keyword in rule:
                return " or ".join(dict.fromkeys(self._type(part) for part in rule[keyword]))
        kind = rule.get("type", "anything")
        if isinstance(kind, list):
            return " or ".join(kind)
        if kind == "array" and "items" in rule:
            return f"list of {self._type(rule['items'])}"
        if kind == "object" and isinstance(rule.get("additionalProperties"), dict) and "properties" not in rule:
            return f"map of {self._type(rule['additionalProperties'])}"
        return str(kind)


def _words(rule: Mapping[str, Any]) -> str:
    words = str(rule.get("description", ""))
    if "default" in rule:
        words += f" Default: `{json.dumps(rule['default'], ensure_ascii=False)}`."
    if "examples" in rule:
        words += f" Example: `{json.dumps(rule['examples'][0], ensure_ascii=False)}`."
    return words.strip()


def _anchor(title: str) -> str:
    return re.sub(r"[^a-z0-9 _-]", "", title.lower()).replace(" ", "-")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def main() -> None:
    """Write them, or with `--check` say which are stale."""
    made = {
        "manifest.md": manifest(),
        "diagnostics.md": diagnostics(),
        "diff.md": diff(),
        "serving.md": serving(),
        "testing-servers.md": testing(),
    }
    stale = [
        name for name, text in made.items() if not (HERE / name).is_file() or (HERE / name).read_text("utf-8") != text
    ]
    if "--check" in sys.argv[1:]:
        sys.exit(f"stale: {', '.join(stale)}; run `make docs`" if stale else 0)
    for name in stale:
        (HERE / name).write_text(made[name], "utf-8")


if __name__ == "__main__":
    main()
