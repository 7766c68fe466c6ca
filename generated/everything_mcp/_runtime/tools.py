# Part of toolwright's runtime, copied as it is. DO NOT EDIT.
"""The tools of one generated package, by their names on the wire.

Takes the package's name and one row for each tool; gives a mapping whose entries lead to the tool's model classes and
to its definition in the package's `manifest.json`. Neither is loaded before it is asked for, so that a thousand tools
cost nothing at start. It never imports the protocol's library.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from .model import Model, Root

Row: TypeAlias = tuple[str, str, str, str, str | None]
"""Name on the wire, method, module below `models`, input class, output class."""

_OURS: Final = "toolwright"


@dataclass(frozen=True, slots=True, eq=False)
class Tool:
    """One tool.

    Attributes:
        name: The name on the wire.
        method: The name of the method in the handlers and in the client.
        input_name: The name of the class `Input`.
        output_name: The name of the class `Output`; `None` where the tool has no `outputSchema`.
    """

    name: str
    method: str
    _module: str = field(repr=False)
    input_name: str
    output_name: str | None
    _tools: Tools = field(repr=False)

    @property
    def Input(self) -> type[Model]:  # noqa: N802 - a class, as in `TOOLS["get-weather"].Input(location="Paris")`
        """The model of the tool's arguments."""
        model: type[Model] = self._load(self.input_name)
        return model

    @property
    def Output(self) -> type[Model] | type[Root[Any]] | None:  # noqa: N802 - a class, see `Input`
        """The model of the tool's result; `None` where the tool has no `outputSchema`."""
        if self.output_name is None:
            return None
        model: type[Model] | type[Root[Any]] = self._load(self.output_name)
        return model

    @property
    def definition(self) -> dict[str, Any]:
        """The tool as it goes on the wire (MCP, schema, `Tool`), key order and nulls included. Not to be changed."""
        return self._tools.entries[self.name][0]

    @property
    def extension(self) -> dict[str, Any]:
        """What the manifest says about the tool under `toolwright`, which never goes on the wire."""
        return self._tools.entries[self.name][1]

    @property
    def policy(self) -> dict[str, Any]:
        """The tool's policy in the manifest: its own, and of the default of all tools what it does not say itself."""
        return {**(self._tools.manifest.get("policy") or {}), **(self.extension.get("policy") or {})}

    @property
    def redacted(self) -> list[str]:
        """JSON Pointers to the arguments that nobody but the handler sees."""
        found: list[str] = self.policy.get("redact") or []
        return found

    @property
    def stem(self) -> str:
        """The start of the names of the tool's classes."""
        return self.input_name.removesuffix("Input")

    @property
    def context_name(self) -> str:
        """The class of what the tool's handler gets as `ctx`."""
        return f"{self.stem}Context" if self.extension.get("ask") else "Context"

    @property
    def is_bound(self) -> bool:
        """Whether the manifest says which HTTP call the tool is, so that it needs no handler."""
        return "http" in self.extension

    @property
    def asserts_formats(self) -> bool:
        """Whether `format` is checked (`formats: assert`) or only an annotation (JSON Schema 2020-12, Validation 7)."""
        return bool(self._tools.manifest.get("formats") == "assert")

    def _load(self, name: str) -> Any:
        return getattr(importlib.import_module(f"{self._tools.package}.models.{self._module}"), name)


class Tools(Mapping[str, Tool]):
    """All tools of a package, in the manifest's order."""

    def __init__(self, package: str, rows: Sequence[Row]) -> None:
        """List the tools.

        Args:
            package: The generated package's name.
            rows: One row for each tool.
        """
        self.package = package
        self._tools = {row[0]: Tool(*row, self) for row in rows}

    def __getitem__(self, name: str) -> Tool:
        """The tool with this name on the wire; `KeyError` where there is none."""
        return self._tools[name]

    def __iter__(self) -> Iterator[str]:
        """The names on the wire, in the manifest's order."""
        return iter(self._tools)

    def __len__(self) -> int:
        """How many tools there are."""
        return len(self._tools)

    def __repr__(self) -> str:
        """The package and its tools' names."""
        return f"Tools({self.package!r}, {list(self._tools)!r})"

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """The package's `manifest.json`. Not to be changed.

        Raises:
            FileNotFoundError: The package has lost its `manifest.json`.
        """
        manifest: dict[str, Any] = json.loads(self.data("manifest.json"))
        return manifest

    def data(self, path: str) -> bytes:
        """A file inside the package.

        Raises:
            FileNotFoundError: The package has lost it.
        """
        found = pkgutil.get_data(self.package, path)
        if found is None:
            raise FileNotFoundError(f"{path} of the package {self.package!r} cannot be read")
        return found

    @cached_property
    def entries(self) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
        """For each tool, what goes on the wire and what is ours."""
        return {wire["name"]: (wire, extension) for wire, extension in self.primitives("tools")}

    def primitives(self, section: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """What a list of the manifest holds, such as `prompts`: what goes on the wire, and what is ours."""
        return [
            ({key: value for key, value in entry.items() if key != _OURS}, entry.get(_OURS) or {})
            for entry in self.manifest.get(section) or ()
        ]
