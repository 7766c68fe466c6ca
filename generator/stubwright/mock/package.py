"""The package that a mock serves: a generated package without models, read from its `manifest.json`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from stubwright.codegen.handler_methods import list_required_methods, name_method
from stubwright.mock.handlers import make_handlers
from stubwright.mock.names import MANIFEST, OPTIONS
from stubwright_runtime.mcp import vocabulary
from stubwright_runtime.package import Package, Tool
from stubwright_runtime.primitives import Prompt, Resource, Template

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_Package = TypeVar("_Package", bound="MockPackage")

_LEFT_OUT: Final = frozenset({"ask", "auth", "bind", "budget", "handles", "http", "policy"})
"""Extension keys that a mock ignores, since it has no limits, authorization, API calls or questions."""


@dataclass(frozen=True, slots=True)
class RawArguments:
    """Unparsed arguments, in place of a tool's model."""

    values: Mapping[str, Any]

    @classmethod
    def model_validate(cls, values: Mapping[str, Any]) -> RawArguments:
        """Wrap arguments, which the server has already validated against the schema."""
        return cls(values)

    def model_dump(self, *, mode: str) -> Mapping[str, Any]:  # noqa: ARG002 - the signature of `Model`
        """Return the arguments, which are JSON in every mode."""
        return self.values


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class MockTool(Tool):
    """A tool that is listed like the server's tool, but does not call an API.

    Attributes:
        is_lenient: True if the server does not list the `outputSchema`, since its API's responses might not match it.
        accepts_invalid: True if the server accepts arguments that violate the `inputSchema`, since its API validates
            them.
    """

    is_lenient: bool = False
    accepts_invalid: bool = False


class MockPackage(Package):
    """A package without modules."""

    def __init__(
        self,
        name: str,
        document: dict[str, Any],
        methods: Mapping[tuple[str, str], str],
        calls: Mapping[str, Mapping[str, Any]],
    ) -> None:
        """Assemble a package.

        Args:
            name: The import name of the package's folder.
            document: The parsed `manifest.json`.
            methods: The handler methods' names, keyed by role and wire name of the entry.
            calls: The HTTP calls that implement the server's tools. The mock does not make them.
        """

        def list_entries(section: vocabulary.Section) -> list[tuple[str, Mapping[str, Any]]]:
            return [(entry[section.key], entry) for entry in document.get(section.name) or ()]

        super().__init__(
            name,
            tools=[
                MockTool(
                    key,
                    method=methods["tool", key],
                    is_lenient=calls.get(key, {}).get("output") == "lenient",
                    accepts_invalid=calls.get(key, {}).get("input") == "lenient",
                )
                for key, _ in list_entries(vocabulary.TOOLS)
            ],
            resources=[
                Resource(key, method=methods.get(("resource", key))) for key, _ in list_entries(vocabulary.RESOURCES)
            ],
            templates=[
                Template(
                    key,
                    method=name_method(vocabulary.TEMPLATES, entry),
                    completes=methods.get(("completion", key)),
                )
                for key, entry in list_entries(vocabulary.TEMPLATES)
            ],
            prompts=[
                Prompt(key, method=methods.get(("prompt", key)), completes=methods.get(("completion", key)))
                for key, _ in list_entries(vocabulary.PROMPTS)
            ],
        )
        self.manifest = document

    def load_model(self, module: str, name: str) -> Any:  # noqa: ARG002 - as `Package` has it
        """Return the model that replaces all others."""
        return RawArguments

    def load_context(self, name: str) -> Any:  # noqa: ARG002 - as `Package` has it
        """Return the default context, which a mock does not use."""
        from stubwright_runtime.server.features.context import Context

        return Context


def load(name: str, folder: Path) -> tuple[MockPackage, object]:
    """Return the package in `folder`, and mock handlers.

    Args:
        name: The import name of the folder.
        folder: The folder that contains the package's files.
    """
    return load_as(MockPackage, name, folder)


def load_as(kind: type[_Package], name: str, folder: Path) -> tuple[_Package, object]:
    """Return a package that is an instance of this class, and mock handlers. See `load`."""
    whole: Mapping[str, Any] = json.loads((folder / MANIFEST).read_bytes())
    document = _remove_policies(whole)
    options: Mapping[str, Any] = json.loads((folder / OPTIONS).read_bytes())
    methods = [*list_required_methods(document)]
    package = kind(name, document, {(method.role, method.key): method.name for method in methods}, _find_calls(whole))
    handlers = make_handlers(
        package.tools,
        {method.name: (method.role, method.key) for method in methods},
        seed=options["seed"],
        in_json=_find_json_resources(document),
        pages=dict(_find_pages(whole)),
    )
    return package, handlers


def _remove_policies(document: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: [_remove_extension_keys(entry) for entry in value] if isinstance(value, list) else value
        for key, value in document.items()
        if key not in _LEFT_OUT
    }


def _remove_extension_keys(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    extension = entry.get("stubwright")
    if extension is None:
        return entry
    return {**entry, "stubwright": {key: value for key, value in extension.items() if key not in _LEFT_OUT}}


def _find_calls(document: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    return {tool["name"]: (tool.get("stubwright") or {}).get("http") or {} for tool in document["tools"]}


def _find_pages(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the name of each paginated tool, and the key in its result that contains the next page's cursor."""
    for tool in document["tools"]:
        extension = tool.get("stubwright") or {}
        if "paginate" in extension:
            yield tool["name"], vocabulary.NEXT_CURSOR
        elif "page" in (extension.get("http") or {}):
            yield tool["name"], "next"


def _find_json_resources(document: Mapping[str, Any]) -> frozenset[str]:
    media_types = [
        (entry[section.key], str(entry.get("mimeType", "")).partition(";")[0].strip().lower())
        for section in (vocabulary.RESOURCES, vocabulary.TEMPLATES)
        for entry in document.get(section.name) or ()
    ]
    return frozenset(key for key, kind in media_types if kind == "application/json" or kind.endswith("+json"))
