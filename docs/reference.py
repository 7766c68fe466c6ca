"""Write the reference pages that are generated from code: manifest, diagnostics, changes, clients and server checks.

python docs/reference.py [--check]
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
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
    """Return the manifest reference: a section for each kind of object, and one for all other definitions."""
    schema = json.loads(SCHEMA.read_text("utf-8"))
    lines = [
        "# The manifest",
        "",
        "This page is generated from the manifest JSON Schema, which `stubwright schema` prints. Keys that MCP",
        "defines are sent to clients. stubwright's own keys are never sent; in a tool, resource or prompt, they are under",
        "`stubwright`.",
        "",
        "Your own top-level keys must start with `x-`. stubwright ignores them.",
        "",
        "See also [Shorthand](shorthand.md) for a shorter syntax, [State between",
        "calls](handlers.md#state-between-calls) for `handles`, and [Tasks](tasks.md) for `task`.",
    ]
    definitions = {f"#/$defs/{name}": part for name, part in schema["$defs"].items()}
    sections = _Sections(definitions)
    lines += sections.of("The whole manifest", schema)
    for part in definitions.values():
        if part.get("properties"):
            lines += sections.of(_sentence(part["title"]), part)
    return "\n".join([*lines, "", "## Values", "", *sections.values(), ""])


def diagnostics() -> str:
    """Return the diagnostics page: its handwritten part unchanged, and a line for each code, errors first."""
    words = (HERE / "diagnostics.md").read_text("utf-8").partition("## Errors\n")[0]
    lines = [words.rstrip()]
    for title, severity in (("Errors", "error"), ("Warnings", "warning")):
        codes = [f"- {code.id}: {code.meaning}" for _, code in sorted(CODES.items()) if code.severity == severity]
        lines += ["", f"## {title}", "", *codes]
    return "\n".join([*lines, ""])


def diff() -> str:
    """Return the `stubwright diff` page: its handwritten part unchanged, and a line for each code."""
    words = (HERE / "diff.md").read_text("utf-8").partition("## Codes\n")[0]
    lines = [words.rstrip(), "", "## Codes"]
    for title, side in (("Wire", "wire"), ("Python", "python")):
        codes = [f"- {code}: {meaning}" for code, (part, meaning) in sorted(changes.CODES.items()) if part == side]
        lines += ["", f"### {title}", "", *codes]
    return "\n".join([*lines, ""])


def serving() -> str:
    """Return the `stubwright dev` and `install` page: its handwritten part unchanged, and a row for each client."""
    words = (HERE / "serving.md").read_text("utf-8").partition("## Clients\n")[0]
    rows = [
        f"| `{client.name}`: {client.title} | {_files(client)} | {_code(client.project)} | `{client.key}` "
        f"| {', '.join(f'[{number}]({source})' for number, source in enumerate(client.sources, 1))} |"
        for client in CLIENTS.values()
    ]
    head = ["| client | user file | project file | servers key | source |", "|---|---|---|---|---|"]
    return "\n".join([f"{words}## Clients", "", *head, *rows, ""])


def testing() -> str:
    """Return the `stubwright test` page: its handwritten part unchanged, and a line for each check."""
    words = (HERE / "testing-servers.md").read_text("utf-8").partition("## Checks\n")[0]
    lines = [words.rstrip(), "", "## Checks", "", "A report names the source of each rule."]
    for title, severity in (("Errors", "error"), ("Warnings", "warning")):
        checks = [f"- `{check.name}`: {check.meaning}" for check in CHECKS if check.severity == severity]
        lines += ["", f"**{title}**", "", *checks]
    return "\n".join([*lines, ""])


_SYSTEMS = {"darwin": "macOS", "linux": "Linux", "win32": "Windows"}


def _files(client: Client) -> str:
    """A client's user files: one, or one per operating system."""
    files = dict.fromkeys(client.user.values())
    if len(files) == 1:
        return _code(*files)
    return "; ".join(f"{name}: {_code(client.user[system])}" for system, name in _SYSTEMS.items())


def _code(path: str | None) -> str:
    """A path, with variables and their defaults in shell syntax."""
    return "none" if path is None else "`" + re.sub(r"\$\{(\w+):", r"${\1:-", path) + "`"


_FEWEST_SHARED = 5  # keys shared with an earlier section; fewer are repeated
_MOST_NESTED = 6  # keys of an object that is listed inline; a larger object gets its own section

_LINKS = {
    "Limits on the cost": "models.md#budgets",
    "maximum cost": "models.md#budgets",
    "Named subsets of the tools": "models.md#toolsets",
    "Shorthand for `inputSchema`": "shorthand.md",
    "uses shorthand": "shorthand.md",
    "TypeScript client": "typescript.md",
    "`stubwright publish --review`": "publishing.md#reasons-for-reviewers",
    "a link to the full result": "openapi.md#files-and-streams",
    "a list in pages": "handlers.md#pages",
    "identifies a repeated call": "repeating.md#tools-that-are-http-calls",
    "calls safe to repeat": "repeating.md",
    "state that the server stores between calls": "handlers.md#state-between-calls",
}
"""Pages for phrases in descriptions. Messages and editors also show descriptions, so these contain no links."""

_ARTICLE = re.compile(r"^(an?|the) ")
_SAMPLE = re.compile(r",? such as .*|, or .*")


@dataclass(frozen=True, slots=True)
class _Sections:
    """Section writer. `definitions` maps each reference to its definition."""

    definitions: Mapping[str, Mapping[str, Any]]
    written: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """The properties of each section so far, by title."""

    def of(self, title: str, part: Mapping[str, Any], *, is_nested: bool = False) -> Iterator[str]:
        """Return the section for one kind of object, and those for the objects in it."""
        yield from ("", f"## {title}", "")
        if not is_nested:  # otherwise the key's line has the description
            yield from (_link(part["description"]), "")
        properties = _find_properties(part)
        source, shared = self._find_shared(properties)
        self.written[title] = properties
        yield from self._lines(part, shared)
        if shared:
            yield f"- {', '.join(f'`{name}`' for name in shared)}: as in [{_lower(source)}](#{_anchor(source)})"
        for name, rule in properties.items():
            if len(_find_properties(rule)) > _MOST_NESTED and name not in shared:
                nested = f"`{name}`" if title == "The whole manifest" else f"`{name}` of {_lower(title)}"
                yield from self.of(nested, rule, is_nested=True)

    def values(self) -> Iterator[str]:
        """Return a line for each linked definition that is not an object with keys."""
        names = set()
        for part in self.definitions.values():
            name = _name(part["title"])
            if not part.get("properties") and not self._is_inline(part) and name not in names:
                names.add(name)
                sample = _SAMPLE.search(part["title"])
                shown = f", {sample[0].lstrip(', ')}" if sample else ""
                yield f"- {name} ({self._type(part)}{shown}): {_link(part['description'])}"

    def _lines(self, part: Mapping[str, Any], shared: Sequence[str] = (), indent: str = "") -> Iterator[str]:
        for name, rule in _find_properties(part).items():
            if name in shared:
                continue
            required = ", required" if name in part.get("required", ()) else ""
            words = self._words(rule)
            yield f"{indent}- `{name}` ({self._type(rule)}{required})" + (f": {words}" if words else "")
            if len(_find_properties(rule)) <= _MOST_NESTED:
                yield from self._lines(rule, indent=indent + "  ")

    def _find_shared(self, properties: Mapping[str, Any]) -> tuple[str, list[str]]:
        """Return the earlier section that has most of the properties unchanged, and their names."""
        shared = {
            title: [name for name, rule in properties.items() if earlier.get(name) == rule]
            for title, earlier in self.written.items()
        }
        title, names = max(shared.items(), key=lambda item: len(item[1]), default=("", []))
        return (title, names) if len(names) >= _FEWEST_SHARED else ("", [])

    def _words(self, rule: Mapping[str, Any]) -> str:
        """The text for a key, or for a definition without its own section."""
        part = self.definitions.get(rule.get("$ref", ""), {})
        return _words(rule) or (_words(part) if self._is_inline(part) else "")

    def _is_inline(self, part: Mapping[str, Any]) -> bool:
        """Whether a definition is inlined: any object, and a list or map of another definition."""
        inner = part.get("items", part.get("additionalProperties"))
        return part.get("type") == ["object", "null"] or (isinstance(inner, dict) and "$ref" in inner)

    def _type(self, rule: Mapping[str, Any] | bool) -> str:
        if isinstance(rule, bool):
            return "anything"
        if "$ref" in rule:
            part = self.definitions[rule["$ref"]]
            if part.get("properties"):
                return f"[{_name(part['title'])}](#{_anchor(part['title'])})"
            return self._type(part) if self._is_inline(part) else f"[{_name(part['title'])}](#values)"
        if "const" in rule:
            return f"`{json.dumps(rule['const'])}`"
        if "enum" in rule:
            *others, last = (f"`{json.dumps(value)}`" for value in rule["enum"])
            return f"{', '.join(others)} or {last}" if others else last
        for keyword in ("oneOf", "anyOf"):
            if keyword in rule:
                return " or ".join(dict.fromkeys(self._type(part) for part in rule[keyword]))
        kind = rule.get("type", "anything")
        if isinstance(kind, list):
            return " or ".join(self._type({**rule, "type": each}) for each in kind)
        if kind == "array" and "items" in rule:
            return f"list of {self._type(rule['items'])}"
        if kind == "object" and isinstance(rule.get("additionalProperties"), dict) and "properties" not in rule:
            return f"map of {self._type(rule['additionalProperties'])}"
        return str(kind)


def _find_properties(rule: Mapping[str, Any]) -> Mapping[str, Any]:
    """The keys of an object, or of the objects in a list or map."""
    inner = rule.get("items", rule.get("additionalProperties"))
    properties = rule.get("properties") or (inner.get("properties", {}) if isinstance(inner, dict) else {})
    return {name: part for name, part in properties.items() if isinstance(part, dict)}


def _link(words: str) -> str:
    for text, page in _LINKS.items():
        words = words.replace(text, f"[{text}]({page})")
    return words


def _words(rule: Mapping[str, Any]) -> str:
    """The description, the default, and an example for a list or object; a scalar needs none."""
    words = _link(str(rule.get("description", "")))
    if "default" in rule:
        words += f" Default: `{json.dumps(rule['default'], ensure_ascii=False)}`."
    if isinstance(rule.get("examples", [None])[0], list | dict):
        words += f" Example: `{json.dumps(rule['examples'][0], ensure_ascii=False)}`."
    return words.replace("\n", " ").strip()


def _name(title: str) -> str:
    """The title of a definition as the name of a type."""
    return _SAMPLE.sub("", _ARTICLE.sub("", title))


def _anchor(title: str) -> str:
    return re.sub(r"[^a-z0-9 _-]", "", title.lower()).replace(" ", "-")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


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
