"""A generated package with its tools, resources and prompts, loaded on first use."""

from __future__ import annotations

import copy
import importlib
import json
import pkgutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeVar

from .mcp.aliases import Alias
from .mcp.vocabulary import SECTIONS

if TYPE_CHECKING:
    from .models.base import Model, Root

_Feature = TypeVar("_Feature")

_OURS: Final = "stubwright"

_LIMITS_OF_CALLS: Final = frozenset({"rateLimit", "concurrency"})

EXACT_FORMATS: Final = "exactFormats"
"""The `manifest.json` key that limits each `format` with a Python type to strings that the type represents exactly."""


def make_stem(method: str) -> str:
    """Return the class name prefix for a method, such as `GetWeather` for `get_weather`."""
    return "".join(part[:1].upper() + part[1:] for part in method.split("_"))


@dataclass(frozen=True, eq=False)
class Tool:
    """A tool of a generated package.

    Attributes:
        name: The wire name.
        method: The method name in the handlers and the client. By default the wire name.
        stem: The prefix of the tool's class names. By default the method in PascalCase.
        module: The module under `models` that defines the tool's classes. By default the method.
    """

    name: str
    _: KW_ONLY
    method: str = ""
    stem: str = ""
    module: str = ""
    _package: Package | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Derive the method, the stem and the module if they are omitted."""
        method = self.method or self.name
        object.__setattr__(self, "method", method)
        object.__setattr__(self, "stem", self.stem or make_stem(method))
        object.__setattr__(self, "module", self.module or method)

    @property
    def package(self) -> Package:
        """The package that contains the tool."""
        if self._package is None:
            raise LookupError(f"the tool {self.name!r} does not belong to a package")
        return self._package

    @property
    def Input(self) -> type[Model]:
        """The tool's argument model, as in `TOOLS["get-weather"].Input(location="Paris")`."""
        model: type[Model] = self.package.load_model(self.module, self.input_name)
        return model

    @property
    def Output(self) -> type[Model | Root[Any]] | None:
        """The tool's result model, or `None` if the tool has no `outputSchema`."""
        if self.output_name is None:
            return None
        model: type[Model | Root[Any]] = self.package.load_model(self.module, self.output_name)
        return model

    @property
    def input_name(self) -> str:
        """The class name of `Input`."""
        return f"{self.stem}Input"

    @cached_property
    def output_name(self) -> str | None:
        """The class name of `Output`, or `None` if the tool has no `outputSchema`."""
        return f"{self.stem}Output" if self.definition.get("outputSchema") is not None else None

    @property
    def context_name(self) -> str:
        """The class name of the handler's `ctx`."""
        return f"{self.stem}Context" if self.has_context else "Context"

    @cached_property
    def has_context(self) -> bool:
        """True if the handler gets a `ctx` class of the tool's own, for questions, handles or pages."""
        return bool(self.extension.get("ask")) or "handles" in self.extension or self.is_paginated

    @cached_property
    def is_paginated(self) -> bool:
        """True if the server paginates the tool's results with sealed cursors (`paginate`)."""
        return "paginate" in self.extension

    @cached_property
    def definition(self) -> dict[str, Any]:
        """The tool's wire definition (MCP, schema, `Tool`). Do not modify it."""
        return self.package.list_entries("tools")[self.name][0]

    @cached_property
    def accepts(self) -> dict[str, Any]:
        """The schema for the handler's arguments: the `inputSchema` plus bound arguments."""
        schema: dict[str, Any] = self.definition["inputSchema"]
        if not self.bound:
            return schema
        own = {name: binding["schema"] for name, binding in self.bound.items()}
        properties = {**schema.get("properties", {}), **own}
        return {**schema, "properties": properties, "required": [*schema.get("required", ()), *own]}

    @property
    def bound(self) -> Mapping[str, Any]:
        """The arguments that the server sets, with their sources. Callers neither send nor see them."""
        bindings: Mapping[str, Any] = self.extension.get("bind") or {}
        return bindings

    @cached_property
    def listed(self) -> dict[str, Any]:
        """The tool's definition in `tools/list`, without the `outputSchema` if the HTTP call is lenient.

        Results MUST conform to a listed `outputSchema` (MCP 2025-11-25, server/tools, "Output Schema"), and clients
        reject results without `structuredContent`. Do not modify it.
        """
        if not self.is_lenient:
            return self.definition
        return {key: value for key, value in self.definition.items() if key != "outputSchema"}

    @cached_property
    def extension(self) -> dict[str, Any]:
        """The tool's `stubwright` object in the manifest, which is never sent to clients."""
        return self.package.list_entries("tools")[self.name][1]

    @cached_property
    def policy(self) -> dict[str, Any]:
        """The manifest's policy for the tool: its own keys, and the defaults for all others. Do not modify it."""
        return self.package.find_policy(self.name)

    @cached_property
    def redacted(self) -> list[str]:
        """JSON Pointers to arguments that only the handler may see."""
        pointers: list[str] = self.policy.get("redact") or []
        return pointers

    def list_hidden(self, arguments: Mapping[str, Any]) -> list[str]:
        """Return JSON Pointers to redacted arguments and handle IDs."""
        if "handles" not in self.extension:
            return self.redacted
        from .schema import handle_ids

        return [*self.redacted, *handle_ids.find_hidden_ids(self, arguments)]

    def redact(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return a deep copy of JSON arguments with hidden values replaced by `"[redacted]"`."""
        if not (hidden := self.list_hidden(arguments)):
            return copy.deepcopy(dict(arguments))
        from .observability import redaction

        return redaction.redact(arguments, hidden)

    @cached_property
    def result_budget(self) -> int | None:
        """The maximum number of tokens in a result, from the tool's or package's `budget`, or `None` for no limit."""
        budgets = (self.extension.get("budget") or {}, self.package.manifest.get("budget") or {})
        return next((budget["result"] for budget in budgets if "result" in budget), None)

    @cached_property
    def task_support(self) -> str:
        """The support for calls as tasks: `forbidden`, `optional` or `required` (MCP 2025-11-25)."""
        execution: dict[str, Any] = self.definition.get("execution") or {}
        support: str = execution.get("taskSupport") or "forbidden"
        return support

    @cached_property
    def is_bound(self) -> bool:
        """True if the manifest binds the tool to an HTTP call, so that the tool needs no handler."""
        return "http" in self.extension

    @cached_property
    def accepts_invalid(self) -> bool:
        """True if invalid arguments are sent to the API (`http: {input: lenient}`)."""
        http: dict[str, Any] = self.extension.get("http") or {}
        return http.get("input") == "lenient"

    @cached_property
    def is_lenient(self) -> bool:
        """True if the result of the HTTP call may violate the `outputSchema` (`http: {output: lenient}`)."""
        http: dict[str, Any] = self.extension.get("http") or {}
        return http.get("output") == "lenient"

    @property
    def asserts_formats(self) -> bool:
        """True if `format` is asserted (`formats: assert`), not only annotated (JSON Schema 2020-12, Validation 7)."""
        return self.package.asserts_formats

    @property
    def has_exact_formats(self) -> bool:
        """True if formats with types accept only strings that these represent exactly (`python: {formats: strict}`)."""
        return self.package.has_exact_formats


class Tools(Mapping[str, Tool]):
    """All tools of a package, in the manifest's order."""

    def __init__(self, package: Package, rows: Sequence[Tool]) -> None:
        """Index a package's tools by wire name."""
        self._name = package.name
        self._tools = {row.name: replace(row, _package=package) for row in rows}

    def __getitem__(self, name: str) -> Tool:
        """Return the tool with this wire name. Raises KeyError."""
        return self._tools[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the wire names, in the manifest's order."""
        return iter(self._tools)

    def __len__(self) -> int:
        """Return the number of tools."""
        return len(self._tools)

    def __repr__(self) -> str:
        """Show the package and its tool names."""
        return f"Tools({self._name!r}, {list(self._tools)!r})"


class Package:
    """A generated package.

    Attributes:
        name: The import name.
        tools: The tools, keyed by wire name.
        resources: The resources, keyed by URI.
        templates: The resource templates, keyed by URI template.
        prompts: The prompts, keyed by wire name.
        handlers: The default location of the handlers, as `module:name`.
    """

    def __init__(
        self,
        name: str,
        *,
        tools: Sequence[Tool] = (),
        resources: Sequence[Any] = (),
        templates: Sequence[Any] = (),
        prompts: Sequence[Any] = (),
        handlers: str | None = None,
    ) -> None:
        """Create a package from its primitives, in the manifest's order."""
        self.name = name
        self.tools = Tools(self, tools)
        self.resources = {row.uri: row for row in resources}
        self.templates = {row.uri: row for row in templates}
        self.prompts = {row.name: row for row in prompts}
        self.handlers = handlers
        self._policies: dict[str, dict[str, Any]] = {}
        self._lifted: frozenset[str] = frozenset()
        self._entries: dict[str, dict[str, tuple[dict[str, Any], dict[str, Any]]]] = {}

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """The package's `manifest.json`. Do not modify it.

        Raises:
            FileNotFoundError: The package's `manifest.json` is missing.
        """
        manifest: dict[str, Any] = json.loads(self.read_data("manifest.json"))
        return manifest

    @property
    def version(self) -> str:
        """The server version."""
        return str(self.manifest.get("server", {}).get("version", "0"))

    @property
    def asserts_formats(self) -> bool:
        """True if `format` is asserted (`formats: assert`), not only annotated (JSON Schema 2020-12, Validation 7)."""
        return bool(self.manifest.get("formats") == "assert")

    @property
    def has_exact_formats(self) -> bool:
        """True if formats with types accept only strings that these represent exactly (`python: {formats: strict}`)."""
        return bool(self.manifest.get(EXACT_FORMATS))

    @property
    def omits_nulls(self) -> bool:
        """True if null represents an omitted argument (`wire: {nulls: omitted}`)."""
        return bool(self.manifest.get("nulls") == "omitted")

    @property
    def exchanges_tokens(self) -> bool:
        """True if callers' tokens are exchanged for API tokens (RFC 8693)."""
        apis: Iterable[Mapping[str, Any]] = (self.manifest.get("apis") or {}).values()
        return any(is_exchange(scheme) for api in apis for scheme in (api.get("auth") or {}).values())

    @cached_property
    def policies(self) -> frozenset[str]:
        """The policy keys that any tool (also by default), resource or prompt sets."""
        policies: list[Mapping[str, Any]] = [tool.policy for tool in self.tools.values()]
        policies += [
            extension.get("policy") or {}
            for section in ("resources", "resourceTemplates", "prompts")
            for _, extension in self.list_entries(section).values()
        ]
        return frozenset(key for policy in policies for key, value in policy.items() if value)

    def find_policy(self, name: str) -> dict[str, Any]:
        """Return a tool's policy: the tool's own keys, and the manifest's defaults for all others."""
        if name not in self._policies:
            own: Mapping[str, Any] = self.list_entries("tools")[name][1].get("policy") or {}
            policy = {**(self.manifest.get("policy") or {}), **own}
            self._policies[name] = {key: value for key, value in policy.items() if key not in self._lifted}
        return self._policies[name]

    def lift_limits(self) -> None:
        """Remove the `rateLimit` and `concurrency` limits. Call this before the server is built."""
        self._lifted = _LIMITS_OF_CALLS
        self._policies.clear()

    @cached_property
    def aliases(self) -> Mapping[str, Alias]:
        """The renamed tools, keyed by former name."""
        return {
            alias["name"]: Alias(alias["name"], name, alias.get("removeAfter"), alias.get("arguments") or {})
            for name, (_, extension) in self.list_entries("tools").items()
            for alias in extension.get("aliases") or ()
        }

    def resolve_alias(self, name: str) -> str:
        """Return a tool's current name, given a former or the current name."""
        alias = self.aliases.get(name)
        return name if alias is None else alias.tool

    @cached_property
    def has_tasks(self) -> bool:
        """True if calls to any tool can run as tasks."""
        return any(tool.task_support != "forbidden" for tool in self.tools.values())

    @cached_property
    def has_calls(self) -> bool:
        """True if any tool is bound to an HTTP call."""
        return any(tool.is_bound for tool in self.tools.values())

    @cached_property
    def keeps_results(self) -> bool:
        """True if large results are stored as resources."""
        return any("large" in tool.extension.get("http", ()) for tool in self.tools.values())

    @cached_property
    def has_result_budget(self) -> bool:
        """True if any tool has a token limit for results."""
        return any(tool.result_budget is not None for tool in self.tools.values())

    @property
    def has_handles(self) -> bool:
        """True if the server has state handles."""
        return bool(self.manifest.get("handles"))

    @property
    def has_scopes(self) -> bool:
        """True if any policy requires scopes, or if a scope includes other scopes."""
        return "scopes" in self.policies or bool((self.manifest.get("auth") or {}).get("scopes"))

    def read_data(self, path: str) -> bytes:
        """Read a file in the package.

        Raises:
            FileNotFoundError: The file is missing.
        """
        content = pkgutil.get_data(self.name, path)
        if content is None:
            raise FileNotFoundError(f"{path} is missing from the package {self.name!r}")
        return content

    def load_model(self, module: str, name: str) -> Any:
        """Return a class from a module under `models`."""
        return getattr(importlib.import_module(f"{self.name}.models.{module}"), name)

    def load_context(self, name: str) -> Any:
        """Return a class from the `contexts` module."""
        return getattr(importlib.import_module(f"{self.name}.contexts"), name)

    def replace_features(self, features: Sequence[_Feature]) -> Sequence[_Feature]:
        """Return the server's features (`server.core.feature.Feature`) unchanged; a subclass can wrap them."""
        return features

    def list_entries(self, section: str) -> Mapping[str, tuple[dict[str, Any], dict[str, Any]]]:
        """Return the definition and extension of each entry in a manifest section, such as `prompts`."""
        if section not in self._entries:
            key = _KEYS[section]
            whole: Mapping[str, Any] = _resolve_tools(self.manifest) if section == "tools" else {}
            self._entries[section] = {
                entry[key]: (
                    {name: value for name, value in whole.get(entry[key], entry).items() if name != _OURS},
                    entry.get(_OURS) or {},
                )
                for entry in self.manifest.get(section) or ()
            }
        return self._entries[section]


def is_exchange(scheme: Mapping[str, Any]) -> bool:
    """Return whether a scheme exchanges the caller's token for an API token (RFC 8693)."""
    return scheme.get("flow") == "tokenExchange"


def _resolve_tools(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    if "bundled" not in manifest:
        return {}
    from .schema.bundles import resolve_bundled

    return resolve_bundled(manifest)


_KEYS: Final = {section.name: section.key for section in SECTIONS}
