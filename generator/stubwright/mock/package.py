"""The package that a mock serves: what a generated one has, but for models, which a mock does not need.

Takes a folder that `server` wrote; gives the package and its handlers. It runs in the process of the mock.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from stubwright.mock.handlers import make_handlers
from stubwright_runtime.package import Package, Tool
from stubwright_runtime.primitives import Prompt, Resource, Template
from stubwright_runtime.server.core.context import Context

if TYPE_CHECKING:
    from collections.abc import Mapping

_Package = TypeVar("_Package", bound="MockPackage")

ROWS: Final = "rows.json"
"""The file that says which methods a package has, beside its `manifest.json`."""


@dataclass(frozen=True, slots=True)
class Unmodelled:
    """Arguments as they came: what stands for a model of any tool."""

    values: Mapping[str, Any]

    @classmethod
    def model_validate(cls, values: Mapping[str, Any]) -> Unmodelled:
        """Take arguments that their schema accepts."""
        return cls(values)

    def model_dump(self, *, mode: str) -> Mapping[str, Any]:  # noqa: ARG002 - as `Model` has it
        """Return them; they are JSON, whatever the mode."""
        return self.values


class MockPackage(Package):
    """A package without modules."""

    def model(self, module: str, name: str) -> Any:  # noqa: ARG002 - as `Package` has it
        """Return what stands for the model."""
        return Unmodelled

    def context(self, name: str) -> Any:  # noqa: ARG002 - as `Package` has it
        """Return the context of tools without one of their own; a mock makes no use of it."""
        return Context


def load(name: str, folder: Path) -> tuple[MockPackage, object]:
    """Return the package of this name, and handlers that answer without logic.

    Args:
        name: The name under which the folder is imported.
        folder: Where its files are.
    """
    return load_as(MockPackage, name, folder)


def load_as(kind: type[_Package], name: str, folder: Path) -> tuple[_Package, object]:
    """Return a package of this class, and handlers; otherwise as `load`."""
    rows: Mapping[str, Any] = json.loads((folder / ROWS).read_text("utf-8"))
    package = kind(
        name,
        tools=[Tool(**row) for row in rows["tools"]],
        resources=[Resource(**row) for row in rows["resources"]],
        templates=[Template(**row) for row in rows["templates"]],
        prompts=[Prompt(**row) for row in rows["prompts"]],
    )
    handlers = make_handlers(package.tools, rows["methods"], seed=rows["seed"], in_json=rows["json"])
    return package, handlers
