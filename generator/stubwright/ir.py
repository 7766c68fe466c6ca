"""The IR: a checked manifest as frozen dataclasses, with every node's source location.

Lowering builds it, and code generation reads it. This module reads no files and creates no names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from stubwright.diagnostics import Place, Pointer
from stubwright.naming import Names
from stubwright.pycode import Name
from stubwright_runtime.mcp import vocabulary

Json: TypeAlias = Any
"""A JSON value. Objects are `dict[str, Json]` in source order, and never change after loading."""

_CONTENT = frozenset({"file", "messages", "text"})

Emit: TypeAlias = Literal["server", "client", "typescript"]
Formats: TypeAlias = Literal["annotate", "assert", "exact", "assert and exact"]
"""The meaning of `format`. With `exact`, formats with types accept only values that the types represent exactly."""

Refs: TypeAlias = Literal["bundled", "inlined", "auto"]


@dataclass(frozen=True, slots=True)
class Schema:
    """A JSON Schema.

    `wire` is the schema on the wire: verbatim, with shared schemas bundled below `$defs` (`definitions` before
    2019-09), unless the manifest sends schemas without references. `dialect` is its meta-schema's identifier. `shared`
    maps the JSON pointer of each bundled schema in `wire` (`#/$defs/Place`) to its name under `schemas`. `own` is
    `wire` without bundled schemas, if known. `rich` is true if formatted strings can have Python types other than `str`
    (`python: {formats: rich}`), and `exact` if they are never `str` (`strict`). `handles` maps the locations of handle
    IDs in `wire` to their kinds.
    """

    wire: Mapping[str, Json]
    dialect: str
    place: Place
    shared: Mapping[str, str] = field(default_factory=dict)
    own: Mapping[str, Json] | None = None
    rich: bool = False
    handles: Mapping[Pointer, str] = field(default_factory=dict)
    exact: bool = False

    @property
    def extended(self) -> tuple[str, ...]:
        """The shared schemas that the root references, directly or in `allOf`, keyed by name under `schemas`."""
        if not self.shared or not isinstance(self.wire, dict):
            return ()
        parts = [self.wire, *(self.wire.get("allOf") or ())]
        references = [part["$ref"] for part in parts if isinstance(part, dict) and "$ref" in part]
        return tuple(self.shared[each] for each in references if each in self.shared)


@dataclass(frozen=True, slots=True)
class SharedSchema:
    """A schema under `schemas`, which several tools can use, with its own references bundled.

    `circle` is the alphabetically first name among the shared schemas in its reference cycle, if any.
    """

    name: str
    names: Names
    schema: Schema
    redacted: tuple[tuple[str, ...], ...] = ()
    circle: str | None = None


@dataclass(frozen=True, slots=True)
class Example:
    """An example call of a tool: its arguments, and optionally its structured output."""

    name: str
    input: Json
    output: Json | None
    has_output: bool
    place: Place


@dataclass(frozen=True, slots=True)
class Question:
    """A question that a handler can ask. `answer` is the answer's class; a URL question has no `schema`."""

    name: str
    message: str
    schema: Schema | None
    answer: Name
    place: Place


@dataclass(frozen=True, slots=True)
class Handle:
    """A kind of state that the server stores between calls.

    `id` is the type of the IDs. `state` is the shared schema of the stored state, which has a class only if the schema
    does. `retention` is a sentence about the lifetime.
    """

    name: str
    id: Name
    state: str
    retention: str
    place: Place


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool. `definition` is its complete entry, `listed` the entry in `tools/list`. The other fields are for the
    Python code.

    `policy` includes the manifest's policy for all tools. `http` is the HTTP call, if any, with the API's defaults.
    `bound` lists the arguments that the server sets; they are in `input`, which handlers receive, but not in
    `definition`. `unbound` lists arguments left to callers although `auth` or an API binds them. `has_handles` is true
    if the handler can create and use handles. `aliases` lists the old names, with prefixes. `paginate` names the
    property of `output` that contains a page's items, and sets the page size. `cursor` is not in `input`, because
    handlers receive a position instead. `reasons` explains the hint values in `annotations`.
    """

    name: str
    names: Names
    description: str | None
    definition: Mapping[str, Json]
    input: Schema
    output: Schema | None
    annotations: Mapping[str, Json]
    examples: tuple[Example, ...]
    deprecated: Mapping[str, str] | None
    questions: tuple[Question, ...]
    place: Place
    policy: Mapping[str, Json] = field(default_factory=dict)
    http: Mapping[str, Json] = field(default_factory=dict)
    bound: frozenset[str] = frozenset()
    unbound: tuple[str, ...] = ()
    has_handles: bool = False
    aliases: tuple[Mapping[str, Json], ...] = ()
    paginate: Mapping[str, Json] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_context(self) -> bool:
        """True if the handler receives a generated context class, not the default."""
        return self.has_handles or bool(self.questions) or bool(self.paginate)

    @property
    def gives_pages(self) -> bool:
        """True if the client's method has `pages`, because the manifest or the API paginates the results."""
        return "page" in self.http or bool(self.paginate)

    @property
    def listed(self) -> Mapping[str, Json]:
        """The tool's entry in `tools/list`, without an `outputSchema` that results might violate.

        Servers MUST provide results that conform to a listed schema (MCP 2025-11-25, server/tools, "Output Schema").
        """
        if self.http.get("output") != "lenient":
            return self.definition
        return {key: value for key, value in self.definition.items() if key != "outputSchema"}

    @property
    def sent(self) -> Schema:
        """The schema for callers' arguments: `input` without bound arguments, and with `cursor` if results are
        paginated.
        """
        if not self.bound and not self.paginate:
            return self.input
        return replace(self.input, wire=self.definition["inputSchema"], own=None)

    @property
    def task_support(self) -> str:
        """The value of `execution.taskSupport`: `forbidden` (the default), `optional` or `required`."""
        execution = self.definition.get("execution")
        support = execution.get("taskSupport") if isinstance(execution, Mapping) else None
        return support if isinstance(support, str) else "forbidden"

    @property
    def call(self) -> str | None:
        """The method and URL of the HTTP call that implements the tool, if any."""
        return f"{self.http.get('method', 'GET')} {self.http['url']}" if self.http else None


@dataclass(frozen=True, slots=True)
class Argument:
    """A prompt argument or a URI template variable: a string or, with `many`, a list of strings."""

    name: str
    description: str | None
    required: bool
    many: bool = False


@dataclass(frozen=True, slots=True)
class Primitive:
    """A resource, resource template or prompt.

    `section` is the manifest section that lists it. `key` identifies it in requests: a URI, a URI template, or a prompt
    name. `handled` is true if the handlers have a method for it. `completed` lists the arguments with completions, and
    `completes` is true if the handlers complete some of them. `arguments` is None for a resource. Callers need all
    `scopes`.
    """

    section: vocabulary.Section
    key: str
    names: Names
    definition: Mapping[str, Json]
    handled: bool
    arguments: tuple[Argument, ...] | None
    completed: tuple[str, ...]
    completes: bool
    questions: tuple[Question, ...]
    deprecated: Mapping[str, str] | None
    place: Place
    scopes: tuple[str, ...] = ()

    @property
    def has_context(self) -> bool:
        """True if the handler receives a generated context class, not the default."""
        return bool(self.questions)

    @property
    def has_model(self) -> bool:
        """True if the handler receives the arguments as a model."""
        return self.handled and self.arguments is not None

    @property
    def kind(self) -> str:
        """The noun for the primitive in messages, such as `resource template`."""
        return self.section.noun


def is_handled(extension: Mapping[str, Json]) -> bool:
    """Return whether the handlers have a method for a resource or prompt with this `stubwright` extension."""
    return not extension.keys() & _CONTENT


def is_completed_by_handlers(extension: Mapping[str, Json]) -> bool:
    """Return whether the handlers have a method that completes arguments, according to this `stubwright` extension."""
    return "handler" in (extension.get("complete") or {}).values()


@dataclass(frozen=True, slots=True)
class Manifest:
    """A whole manifest: fragments included, overlays applied, references bundled.

    `source` is the manifest's path in file headers, with `/` separators. `command` is the command that generates
    its package. `server` is MCP's `Implementation` with `instructions`. `package` is the import package; `stem` is
    the prefix of its classes. `handlers` is `module:Name` of the handwritten class, if declared. `files` contains
    the package's additional files, keyed by path. `document` is the resolved manifest, written as `manifest.json`.
    `refs` specifies whether schemas in `document` and in tool definitions have references (`auto`: some do);
    `ir.Schema` always does. `splits_types` is true if type lists in these schemas are written as `anyOf`. `handles`
    lists the kinds of state that the server stores between calls; their schemas are in `shared`. `targets` lists
    the clients and APIs that must accept the tools. `budget` is the maximum cost of the lists, in tokens.
    """

    source: str
    server: Mapping[str, Json]
    package: Name
    stem: Name
    handlers: str | None
    tools: tuple[Tool, ...]
    resources: tuple[Primitive, ...]
    templates: tuple[Primitive, ...]
    prompts: tuple[Primitive, ...]
    files: Mapping[str, bytes]
    shared: tuple[SharedSchema, ...]
    emit: frozenset[Emit]
    formats: Formats
    document: Mapping[str, Json]
    command: str = ""
    refs: Refs = "bundled"
    splits_types: bool = False
    handles: tuple[Handle, ...] = ()
    targets: tuple[str, ...] = ()
    budget: Mapping[str, int] = field(default_factory=dict)

    @property
    def primitives(self) -> Mapping[vocabulary.Section, tuple[Primitive, ...]]:
        """The resources, resource templates and prompts, without skill files."""
        return {
            vocabulary.RESOURCES: self.resources,
            vocabulary.TEMPLATES: self.templates,
            vocabulary.PROMPTS: self.prompts,
        }

    @property
    def toolsets(self) -> Mapping[str, Mapping[str, Json]]:
        """The toolsets by name, each with the names of its tools."""
        return self.document.get("toolsets") or {}

    @property
    def skills(self) -> Sequence[Mapping[str, Json]]:
        """The entries of `skills/list`."""
        return self.document.get("skills") or ()

    @property
    def skill_files(self) -> tuple[str, ...]:
        """The URIs of the skills' files, which are resources without a handler or a client method."""
        return tuple(dict.fromkeys(file["uri"] for skill in self.skills for file in skill["resources"]))

    @property
    def skill_resources(self) -> Sequence[Mapping[str, Json]]:
        """The entries of `resources/list` for the skills' files, which are not in `primitives`."""
        files = frozenset(self.skill_files)
        return [
            {key: value for key, value in entry.items() if key != "stubwright"}
            for entry in self.document.get("resources") or ()
            if entry["uri"] in files
        ]

    @property
    def has_package(self) -> bool:
        """True if `emit` includes a part of a Python package."""
        return not self.emit <= {"typescript"}

    @property
    def output(self) -> str:
        """The Python package's folder, or the TypeScript module's path if no package is generated."""
        return self.package if self.has_package else f"typescript/{self.package}.ts"

    @property
    def calls(self) -> bool:
        """True if the generated server calls an API."""
        return "server" in self.emit and any(tool.call is not None for tool in self.tools)
