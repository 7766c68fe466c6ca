"""The meaning of a checked manifest: frozen dataclasses, in which every node knows its place in the source.

Lowering builds these and planning reads them; nothing here reads a file or makes a name.
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
"""A JSON value; objects are `dict[str, Json]` in the order of the source, and are never changed after loading."""

_CONTENT = frozenset({"file", "messages", "text"})

Emit: TypeAlias = Literal["server", "client"]
Formats: TypeAlias = Literal["annotate", "assert", "exact", "assert and exact"]
"""The meaning of `format`. `exact`: formats with types accept only what these represent exactly, others annotate."""

Refs: TypeAlias = Literal["bundled", "inlined", "auto"]


@dataclass(frozen=True, slots=True)
class Schema:
    """One JSON Schema.

    `wire` is the schema, verbatim, but for shared schemas bundled below `$defs` (`definitions` before 2019-09); it
    goes on the wire, unless the manifest has it sent without references. `dialect` is the identifier of its
    meta-schema. `shared` maps each JSON pointer in `wire` that a bundled shared schema has (`#/$defs/Place`) to the
    name it has under `schemas`. `own` is `wire` without these, where it is known. `rich` is true if strings with a
    format are more than texts in Python (`python: {formats: rich}`), and `exact` that they are no texts at all
    (`strict`). `handles` has the kind of handle whose id is at a place in `wire`, by the place.
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
        """The shared schemas that its root refers to, itself or in `allOf`, by their names under `schemas`."""
        if not self.shared or not isinstance(self.wire, dict):
            return ()
        parts = [self.wire, *(self.wire.get("allOf") or ())]
        references = [part["$ref"] for part in parts if isinstance(part, dict) and "$ref" in part]
        return tuple(self.shared[each] for each in references if each in self.shared)


@dataclass(frozen=True, slots=True)
class SharedSchema:
    """A schema under `schemas`, which several tools may use, with its own references bundled.

    `circle` is the first name, in the order of the alphabet, of the shared schemas that refer to it and it to them;
    none where there is no other.
    """

    name: str
    names: Names
    schema: Schema
    redacted: tuple[tuple[str, ...], ...] = ()
    circle: str | None = None


@dataclass(frozen=True, slots=True)
class Example:
    """A call that shows a tool: its arguments, and where it is given, its structured output."""

    name: str
    input: Json
    output: Json | None
    has_output: bool
    place: Place


@dataclass(frozen=True, slots=True)
class Question:
    """A question that a handler may ask: `answer` is the class of its answers; a question by URL has no `schema`."""

    name: str
    message: str
    schema: Schema | None
    answer: Name
    place: Place


@dataclass(frozen=True, slots=True)
class Handle:
    """A kind of state that the server keeps between calls.

    `id` is the type of its ids. `state` is the shared schema of its states, which has a class only where that has one.
    `retention` says in a sentence how long one lives.
    """

    name: str
    id: Name
    state: str
    retention: str
    place: Place


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: `definition` is the whole of it, of which `tools/list` sends `listed`; the rest is for the Python view.

    `policy` is its own with what the manifest says for all tools. `http` is the HTTP call that implements it, where the
    manifest says one, with what its API says for all calls. `bound` are the arguments that the server sets; they are in
    `input`, which handlers get, and not in `definition`; `unbound` are those that it leaves to callers although `auth`
    or an API binds them. `has_handles` is true if its handler can make and use handles.
    `aliases` are its old names, as the manifest has them but with prefixes. `paginate` specifies which property of
    `output` has the items of a page, and how many these should be; `cursor` is not in `input`: handlers get a position
    instead. `reasons` explain why hints of `annotations` have the values that they have.
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
        """True if its handler gets its own context class."""
        return self.has_handles or bool(self.questions) or bool(self.paginate)

    @property
    def gives_pages(self) -> bool:
        """True if the method of a client has `pages`: the manifest pages the results, or the API does."""
        return "page" in self.http or bool(self.paginate)

    @property
    def listed(self) -> Mapping[str, Json]:
        """The entry for `tools/list`, without an `outputSchema` that results need not fit.

        Servers MUST provide results that conform to one that is listed (MCP 2025-11-25, server/tools, "Output Schema").
        """
        if self.http.get("output") != "lenient":
            return self.definition
        return {key: value for key, value in self.definition.items() if key != "outputSchema"}

    @property
    def sent(self) -> Schema:
        """The schema of what callers send: `input` without what is bound, and with `cursor` where there are pages."""
        if not self.bound and not self.paginate:
            return self.input
        return replace(self.input, wire=self.definition["inputSchema"], own=None)

    @property
    def task_support(self) -> str:
        """The support for tasks: `forbidden`, `optional` or `required`."""
        execution = self.definition.get("execution")
        support = execution.get("taskSupport") if isinstance(execution, Mapping) else None
        return support if isinstance(support, str) else "forbidden"

    @property
    def call(self) -> str | None:
        """The method and URL of the HTTP call that implements it; None if there is none."""
        return f"{self.http.get('method', 'GET')} {self.http['url']}" if self.http else None


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a prompt, or a variable of a URI template: text, or with `many` a list of texts."""

    name: str
    description: str | None
    required: bool
    many: bool = False


@dataclass(frozen=True, slots=True)
class Primitive:
    """The common parts of a resource, a resource template and a prompt.

    `section` is the list that it is in. `key` is what it is asked for by: a URI, a URI template, or a prompt's
    name. `handled` is true if the handlers have a method for it. `completed` are the arguments that something is
    offered for, and `completes` is true if the handlers have a method for some of them. `arguments` is None for a
    resource, which takes none. `scopes` are those that callers need.
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
        """True if its handler gets its own context class."""
        return bool(self.questions)

    @property
    def has_model(self) -> bool:
        """True if a handler gets its arguments as a model."""
        return self.handled and self.arguments is not None

    @property
    def kind(self) -> str:
        """The kind of the primitive in words."""
        return self.section.noun


def is_handled(extension: Mapping[str, Json]) -> bool:
    """Return whether the handlers have a method for the resource or prompt that says this under `stubwright`."""
    return not extension.keys() & _CONTENT


def is_completed_by_handlers(extension: Mapping[str, Json]) -> bool:
    """Return whether the handlers have a method that completes its arguments."""
    return "handler" in (extension.get("complete") or {}).values()


@dataclass(frozen=True, slots=True)
class Manifest:
    """A whole manifest: fragments included, overlays applied, references bundled.

    `source` is the path of the manifest as file headers show it, with `/` between folders, and `command` what generates
    its package. `server` is the `server` object as MCP's `Implementation`, with `instructions` next to it. `package`
    is the import package and `stem` the start of its classes. `handlers` is `module:Name` of the handwritten class,
    where the manifest says it. `files` are those that travel inside the package, by their paths in it. `document` is
    the resolved manifest that is written as `manifest.json`. `refs` specifies whether the schemas in `document`, and in
    the definitions of tools, have references (`auto`: some do); those in `ir.Schema` do. `splits_types` is true if
    there, lists of types are written as `anyOf`.
    `handles` are the kinds of state that it keeps between calls; the schemas of these states are among the `shared`.
    `targets` names the clients and APIs that must take its tools; `budget` is what its lists may cost, in tokens.
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
        """The resources, templates and prompts that it lists."""
        return {
            vocabulary.RESOURCES: self.resources,
            vocabulary.TEMPLATES: self.templates,
            vocabulary.PROMPTS: self.prompts,
        }

    @property
    def toolsets(self) -> Mapping[str, Mapping[str, Json]]:
        """Its toolsets, with the names of their tools."""
        return self.document.get("toolsets") or {}

    @property
    def skills(self) -> Sequence[Mapping[str, Json]]:
        """Its skills, as `skills/list` has them."""
        return self.document.get("skills") or ()

    @property
    def skill_files(self) -> tuple[str, ...]:
        """The URIs of the files of its skills: resources that no handler reads, and no client has a method for."""
        return tuple(dict.fromkeys(file["uri"] for skill in self.skills for file in skill["resources"]))

    @property
    def skill_resources(self) -> Sequence[Mapping[str, Json]]:
        """The files of its skills as `resources/list` has them; they are not among its resources."""
        files = frozenset(self.skill_files)
        return [
            {key: value for key, value in entry.items() if key != "stubwright"}
            for entry in self.document.get("resources") or ()
            if entry["uri"] in files
        ]

    @property
    def calls(self) -> bool:
        """True if its server calls an API."""
        return "server" in self.emit and any(tool.call is not None for tool in self.tools)
