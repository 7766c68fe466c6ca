"""Converts a client's tools to functions for a model API, and the model's function calls to tool calls."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ...projection.codecs import ProjectionError
from ...projection.forms import FORMS, Form
from ...projection.functions import ProjectedTool, as_tools, project_tools

if TYPE_CHECKING:
    from ...package import Package


def list_functions(package: Package, target: str, toolset: str | None = None) -> list[dict[str, Any]]:
    """Return the tools as functions in a model API's format. Raises ValueError for an unknown API."""
    form = _find_form(target)
    return as_tools(form, project_package(package, form, toolset).values())


def read_call(
    package: Package, target: str, name: str, arguments: Mapping[str, Any] | str, toolset: str | None = None
) -> tuple[str, dict[str, Any]]:
    """Return the name and arguments of the tool that a model called.

    Args:
        package: The package.
        target: The API's name.
        name: The function's name.
        arguments: The model's arguments, as an object or its JSON.
        toolset: The toolset that must contain the tool, or `None` for any tool.

    Raises:
        ProjectionError: The function is unknown, or its arguments cannot be parsed.
        ValueError: The API is unknown.
    """
    functions = project_package(package, _find_form(target), toolset)
    if name not in functions:
        raise ProjectionError(f"unknown function {name!r}")
    return functions[name].tool, read_arguments(functions[name], arguments)


def read_arguments(function: ProjectedTool, arguments: Mapping[str, Any] | str) -> dict[str, Any]:
    """Convert a model's arguments, an object or its JSON, to the tool's arguments.

    Raises:
        ProjectionError: The arguments cannot be parsed.
    """
    given: Any = arguments
    if isinstance(arguments, str):
        try:
            given = json.loads(arguments) if arguments.strip() else {}
        except (ValueError, RecursionError) as error:
            raise ProjectionError(f"the arguments of {function.name} are not JSON: {error}") from None
    if not isinstance(given, Mapping):
        raise ProjectionError(f"the arguments of {function.name} must be an object")
    decoded: dict[str, Any] = function.decode(dict(given))
    return decoded


def _find_form(target: str) -> Form:
    if target not in FORMS:
        raise ValueError(f"unknown API {target!r}; supported APIs: {', '.join(FORMS)}")
    return FORMS[target]


@lru_cache(maxsize=32)
def project_package(package: Package, form: Form, toolset: str | None) -> Mapping[str, ProjectedTool]:
    """Convert a package's or toolset's tools to functions, keyed by name."""
    names = package.tools if toolset is None else package.manifest["toolsets"][toolset]["tools"]
    definitions = [package.tools[name].definition for name in names]
    return {projected.name: projected for projected in project_tools(definitions, form)}
