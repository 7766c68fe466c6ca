"""What a package consists of: its parts, its runtime modules, and the names that its pages share.

Takes the IR; judges nothing and words nothing.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from toolwright import ir, naming
from toolwright.codegen.handles import held, kinds
from toolwright.pycode import Name

if TYPE_CHECKING:
    from toolwright.codegen.handles import Held

RUNTIME: Final[Mapping[str, tuple[str, ...]]] = {
    "models": ("errors", "lazy", "model", "package", "terminal", "values"),
    "unions": ("unions",),
    "maps": ("maps",),
    "formats": ("formats",),
    "tools": (
        "faults",
        "hygiene",
        "instances",
        "logs",
        "nesting",
        "objects",
        "revisions",
        "telemetry",
        "texts",
        "validation",
    ),
    "patterns": ("patterns",),
    "alternatives": ("alternatives",),
    "complexity": ("complexity", "violations"),
    "bundles": ("bundles",),
    "redaction": ("redaction",),
    "answers": ("answers",),
    "server": (
        "amounts",
        "server/asgi",
        "server/audit",
        "server/audit_file",
        "server/bad_requests",
        "server/calls",
        "server/cancellation",
        "server/changes",
        "server/connections",
        "server/content",
        "server/context",
        "server/course",
        "server/dispatcher",
        "server/draining",
        "server/expiry",
        "server/features",
        "server/framing",
        "server/guard",
        "server/handler_check",
        "server/handler_loading",
        "server/health",
        "server/in_flight",
        "server/invocation",
        "server/lifespan",
        "server/lists",
        "server/lost_store",
        "server/main",
        "server/observing",
        "server/occupancy",
        "server/outcomes",
        "server/parts",
        "server/principal",
        "server/protections",
        "server/replay",
        "server/resumption",
        "server/returns",
        "server/sanitizing",
        "server/sdk",
        "server/sealed_requests",
        "server/shutdown",
        "server/stdio",
        "server/steps",
        "server/streams",
        "server/subscriptions",
        "server/telemetry",
        "server/threads",
        "server/uploads",
        "state/budget",
        "state/marks",
        "state/memory",
        "state/outages",
        "state/places",
        "state/redis",
        "state/rosters",
        "state/scripts",
        "state/seals",
        "state/store",
    ),
    "client": (
        "client/arguments",
        "client/audit",
        "client/binding",
        "client/bounded_transports",
        "client/bounds",
        "client/calls",
        "client/confirmation",
        "client/content",
        "client/drift",
        "client/errors",
        "client/guarded",
        "client/in_flight",
        "client/input_required",
        "client/lenient",
        "client/lines",
        "client/live",
        "client/network",
        "client/options",
        "client/pages",
        "client/questions",
        "client/responses",
        "client/results",
        "client/session",
        "client/telemetry",
        "client/thinning",
        "client/transport",
    ),
    "auth": ("policy/keys", "policy/tokens"),
    "claims": ("policy/claims",),
    "rates": ("policy/rates", "policy/shared_windows", "policy/windows"),
    "limits": ("policy/limits",),
    "scopes": ("policy/scopes",),
    "handles": ("handle_places", "server/handles"),
    "client_primitives": ("client/primitives",),
    "headers": ("client/parameter_headers",),
    "changes": ("client/subscriptions",),
    "client_requests": (
        "client/callbacks",
        "client/elicitation",
        "client/visits",
        "server/client_requests",
        "server/url_questions",
    ),
    "elicitation": ("server/elicitation",),
    "confirmation": ("server/abridging", "server/confirmation"),
    "sampling": ("server/sampling",),
    "tasks": (
        "client/task_errors",
        "client/task_requests",
        "client/task_runs",
        "client/task_states",
        "client/tasks",
        "tasks/asking",
        "tasks/channel",
        "tasks/engine",
        "tasks/engines",
        "tasks/ledger",
        "tasks/lines",
        "tasks/listening",
        "tasks/memory",
        "tasks/methods",
        "tasks/records",
        "tasks/rounds",
        "tasks/runs",
        "tasks/service",
        "tasks/streams",
        "tasks/wire",
        "tasks/worker",
    ),
    "primitives": ("primitives",),
    "resources": ("server/resources",),
    "prompts": ("server/prompts",),
    "completion": ("server/completion",),
    "http": ("http/calls", "http/requests", "http/responses", "http/styles"),
    "server_variables": ("http/servers",),
    "tokens": ("http/tokens",),
    "events": ("http/events",),
    "lenient": ("client/deviation", "http/lenient"),
    "large": ("http/large", "server/kept"),
    "shapes": ("http/selections", "http/shapes"),
    "pages": ("client/paging", "http/pages"),
    "examples": ("equality", "server/example_tests"),
}
"""The modules of the runtime that each feature of a package needs beside those of the features above it.

Of these a package has those of the halves that it has: what is below `client` needs a client, what is below `server`,
`http`, `policy`, `state` or `tasks` a server.
"""

_IMPLIED: Final[Mapping[str, tuple[str, ...]]] = {
    "sampling": ("client_requests",),
    "tasks": ("client_requests",),
    "confirmation": ("elicitation",),
    "elicitation": ("alternatives", "client_requests"),
    "client_requests": ("answers",),
    "client": ("answers",),
    "server": ("answers",),
    "complexity": ("alternatives", "patterns"),
    "handles": ("redaction",),
    "http": ("redaction",),
    "large": ("lenient", "resources"),
    "pages": ("shapes",),
    "resources": ("primitives",),
    "prompts": ("primitives",),
    "completion": ("primitives",),
}
"""What each feature builds on, where that is not a part of every package."""

_LIMITS: Final = frozenset({"concurrency", "maxResultBytes", "timeout"})
_REFERENCES: Final = frozenset({"$dynamicRef", "$recursiveRef", "$ref"})
_CHOICES: Final = frozenset({"anyOf", "oneOf"})
_PATTERNS: Final = frozenset({"pattern", "patternProperties"})
_MANY: Final = 1_000
"""Keys and values; with fewer, only references can multiply the work."""

_PLAIN: Final = re.compile(r"[\w#/$.-]*", re.ASCII)
"""References that need no escapes."""


def input_class(tool: ir.Tool) -> Name:
    """The class of a tool's arguments."""
    return naming.input_class(tool.names)


def output_class(tool: ir.Tool) -> Name | None:
    """The class of a tool's structured result; None where it has no output schema."""
    return naming.output_class(tool.names) if tool.output is not None else None


def primitive_features(manifest: ir.Manifest) -> frozenset[str]:
    """The runtime modules of the parts that the server has beside its tools."""
    parts = set()
    if manifest.resources or manifest.templates or _has_capability(manifest, "resources"):
        parts.add("resources")
    if manifest.prompts or _has_capability(manifest, "prompts"):
        parts.add("prompts")
    if any(primitive.completed for primitive in every(manifest)) or _has_capability(manifest, "completions"):
        parts.add("completion")
    return frozenset(parts)


def has_examples(manifest: ir.Manifest) -> bool:
    """Whether some tool has an example that can be a test."""
    return any(tool.examples for tool in manifest.tools)


def modelled(manifest: ir.Manifest) -> tuple[ir.Primitive, ...]:
    """The prompts and resource templates whose handlers get a model."""
    return tuple(primitive for primitive in every(manifest) if primitive.has_model)


def every(manifest: ir.Manifest) -> tuple[ir.Primitive, ...]:
    """All resources, resource templates and prompts."""
    return (*manifest.resources, *manifest.templates, *manifest.prompts)


def primitive_module(primitive: ir.Primitive) -> Name:
    """The module of a primitive's models, below `models`."""
    return Name(f"{folder_of(primitive)}.{primitive.names.module}")


def folder_of(primitive: ir.Primitive) -> str:
    """The folder of its models, below `models`."""
    return "prompts" if primitive.kind == "prompt" else "resources"


def _has_capability(manifest: ir.Manifest, name: str) -> bool:
    return (manifest.server.get("capabilities") or {}).get(name) is True


def needs_handlers(manifest: ir.Manifest) -> bool:
    """Whether the server needs handlers."""
    needing = any(primitive.handled or primitive.completes for primitive in every(manifest))
    return needing or any(tool.call is None for tool in manifest.tools)


def features(manifest: ir.Manifest) -> tuple[str, ...]:
    """The features of the runtime that the package of a manifest uses, in the order of the table."""
    used = {"models", *manifest.emit, *manifest.features}
    states = {handle.state for handle in manifest.handles}
    schemas = [*_schemas(manifest.tools), *(each.schema for each in manifest.shared if each.name in states)]
    modelled_schemas = (*schemas, *(shared.schema for shared in manifest.shared))
    used |= {"unions"} if any(may_be_union(_own(schema)) for schema in modelled_schemas) else set()
    used |= {"maps"} if any(may_be_mapping(_own(schema)) for schema in modelled_schemas) else set()
    used |= {"formats"} if any(schema.rich for schema in modelled_schemas) else set()
    used |= {"bundles"} if "bundled" in manifest.document else set()
    if manifest.emit:
        used |= {"tools", *_of_schemas(schemas, manifest.shared)}
    used |= declared(manifest)
    if every(manifest):
        used.add("client_primitives")
    if "client" in manifest.emit and used & {"confirmation", "elicitation", "sampling", "tasks"}:
        used.add("complexity")  # whatever a server sends as the schema of a question is checked
    waiting = [*used]
    while waiting:
        implied = set(_IMPLIED.get(waiting.pop(), ())) - used
        used |= implied
        waiting += implied
    return tuple(name for name in RUNTIME if name in used and _copied(name, manifest))


def declared(manifest: ir.Manifest) -> frozenset[str]:
    """The features that the manifest asks for in so many words, whatever its schemas need beside."""
    used: set[str] = set()
    if manifest.emit:
        used |= {*_of_tools(manifest.tools)}
        if any(tool.questions for tool in manifest.tools) or any(one.questions for one in modelled(manifest)):
            used.add("elicitation")
        if manifest.handles:
            used.add("handles")
    if "server" in manifest.emit:
        used |= primitive_features(manifest)
        if manifest.calls:
            used |= {"http", *_of_apis(manifest)}
        if has_examples(manifest):
            used.add("examples")
        auth = manifest.document.get("auth") or {}
        if auth:
            used.add("auth")
        if auth.get("scopes") or any(primitive.scopes for primitive in every(manifest)):
            used.add("scopes")
        if any(tool.bound for tool in manifest.tools):
            used.add("claims")
    else:
        used -= {"limits", "rates", "scopes"}
    return frozenset(used)


def _of_tools(tools: Sequence[ir.Tool]) -> Iterator[str]:
    """The features that tools need by their policies."""
    if any(tool.policy.get("redact") for tool in tools):
        yield "redaction"
    if any(tool.task_support != "forbidden" for tool in tools):
        yield "tasks"
    if any(tool.policy.get("scopes") for tool in tools):
        yield "scopes"
    if any("rateLimit" in tool.policy for tool in tools):
        yield "rates"
    if any(not _LIMITS.isdisjoint(tool.policy) for tool in tools):
        yield "limits"
    if any(tool.policy.get("confirm") for tool in tools):
        yield "confirmation"
    if any(tool.http.get("output") == "lenient" for tool in tools):
        yield "lenient"
    if any("select" in tool.http or "responseHeaders" in tool.http for tool in tools):
        yield "shapes"
    if any("text/event-stream" in tool.http.get("accept", "") for tool in tools):
        yield "events"
    if any("large" in tool.http for tool in tools):
        yield "large"
    if any("page" in tool.http for tool in tools):
        yield "pages"


def _of_schemas(schemas: Sequence[ir.Schema], shared: Sequence[ir.SharedSchema]) -> Iterator[str]:
    """The features that schemas need; a property that is called like a keyword may make it one too many.

    What is bundled into many of them is looked at once.
    """
    bundled = {id(schema.shared): schema.shared for schema in schemas}
    reached = {name for names in bundled.values() for name in names.values()}
    words: set[str] = set()
    references: set[str] = set()
    doubtful: list[ir.Schema] = []
    for schema in (*schemas, *(each.schema for each in shared if each.name in reached)):
        pairs = [*_pairs(_own(schema))]
        referring = {value for key, value in pairs if key in _REFERENCES and isinstance(value, str)}
        words.update(key for key, _ in pairs)
        references |= referring
        if referring or len(pairs) > _MANY:
            doubtful.append(schema)
    if "x-mcp-header" in words:
        yield "headers"
    if words & _CHOICES:
        yield "alternatives"
    if any(_may_multiply(schema.wire) for schema in doubtful):
        yield "complexity"
    if words & _PATTERNS or not all(map(_PLAIN.fullmatch, references)):
        yield "patterns"


def _of_apis(manifest: ir.Manifest) -> Iterator[str]:
    """The features that the APIs of calls need."""
    apis = (manifest.document.get("apis") or {}).values()
    if any(api.get("variables") for api in apis):
        yield "server_variables"
    if any(auth["type"] == "oauth2" for api in apis for auth in (api.get("auth") or {}).values()):
        yield "tokens"


def _own(schema: ir.Schema) -> object:
    """A schema without those that are bundled into it."""
    return schema.wire if schema.own is None else schema.own


def _pairs(value: object) -> Iterator[tuple[str, object]]:
    """All keys in a JSON value with what stands there."""
    for here in _mappings(value):
        yield from here.items()


def _schemas(tools: Sequence[ir.Tool]) -> list[ir.Schema]:
    """The schemas of tools."""
    return [schema for tool in tools for schema in (tool.input, tool.output) if schema is not None]


_SCHEMAS: Final = ("$defs", "definitions", "properties")
_SCHEMA: Final = ("additionalProperties", "items")
_NO_TYPE: Final = frozenset(
    {"$comment", "$id", "$ref", "$schema", "const", "default", "deprecated", "description", "enum", "examples"}
    | {"exclusiveMaximum", "exclusiveMinimum", "format", "maxItems", "maxLength", "maxProperties", "maximum"}
    | {"minItems", "minLength", "minProperties", "minimum", "multipleOf", "pattern", "readOnly", "required", "title"}
    | {"type", "uniqueItems", "writeOnly", "x-mcp-header"}
)


_KNOWN: Final = frozenset({*_SCHEMAS, *_SCHEMA, *_NO_TYPE})
_STRUCTURAL: Final = frozenset({*_SCHEMA, "properties"})


def may_be_union(schema: object) -> bool:
    """Whether a model of a schema may have a choice of models or mappings: where each part has one type, none has."""
    waiting = [schema]
    while waiting:
        here = waiting.pop()
        if isinstance(here, bool):
            continue
        if not isinstance(here, Mapping) or not here.keys() <= _KNOWN:
            return True
        kinds = here.get("type")
        if isinstance(kinds, list) and len({*map(str, kinds)} - {"null"}) > 1:
            return True
        if kinds is None and not here.keys().isdisjoint(_STRUCTURAL):
            return True
        for keyword in _SCHEMAS:
            below = here.get(keyword)
            if isinstance(below, Mapping):
                waiting += below.values()
        waiting += [here[keyword] for keyword in _SCHEMA if keyword in here]
    return False


def may_be_mapping(schema: object) -> bool:
    """Whether a model of a schema may be a mapping: not where all that says what other keys hold stands for itself."""
    waiting: list[tuple[object, bool]] = [(schema, True)]
    while waiting:
        here, is_class = waiting.pop()
        if not isinstance(here, Mapping):
            continue
        combined = [each for key, each in here.items() if key not in _KNOWN and key != "patternProperties"]
        if _says_values(here) and (is_class or "properties" in here or combined):
            return True
        for keyword in _SCHEMAS:
            below = here.get(keyword)
            if isinstance(below, Mapping):
                waiting += [(each, keyword != "properties") for each in below.values()]
        waiting += [(here[keyword], False) for keyword in _SCHEMA if keyword in here]
        if any(_says_values(inner) for each in combined for inner in _mappings(each)):
            return True
    return False


def _says_values(schema: Mapping[str, object]) -> bool:
    """Whether a schema says what keys hold that are no properties."""
    rest = schema.get("additionalProperties")
    return bool(isinstance(rest, Mapping) and rest) or "patternProperties" in schema


def _mappings(value: object) -> Iterator[Mapping[str, object]]:
    """All objects in a JSON value."""
    waiting = [value]
    while waiting:
        here = waiting.pop()
        if isinstance(here, Mapping):
            yield here
            waiting += here.values()
        elif isinstance(here, list | tuple):
            waiting += here


def _may_multiply(schema: ir.Json) -> bool:
    """Whether references let the validator look at one value in many ways."""
    from toolwright.runtime.complexity import Reckoning
    from toolwright.runtime.patterns import compiled

    reckoning = Reckoning(schema, lambda one: compiled(one, formats=False))
    return reckoning.is_explosive or reckoning.multiplies


def _copied(feature: str, manifest: ir.Manifest) -> tuple[str, ...]:
    """The modules of a feature that a package has, by the halves that it has."""
    halves = {"", *manifest.emit, *(("http", "policy", "state", "tasks") if "server" in manifest.emit else ())}
    return tuple(module for module in RUNTIME[feature] if module.rpartition("/")[0] in halves)


def runtime(manifest: ir.Manifest, used: Iterable[str]) -> tuple[str, ...]:
    """The runtime modules of the features that a package uses, as paths below `_runtime` without `.py`, sorted."""
    modules = {module for feature in used for module in _copied(feature, manifest)}
    folders = {f"{module.rpartition('/')[0]}/__init__" for module in modules if "/" in module}
    return tuple(sorted({"__init__", *folders, *modules}))


def context_module(used: Container[str]) -> Name:
    """The module below `_runtime.server` whose `Context` handlers get."""
    return Name(next((name for name in ("sampling", "client_requests") if name in used), "context"))


@dataclass(frozen=True, slots=True)
class AskMethod:
    """One question as a method: whether it opens a URL, the class of its answer, and what the user reads."""

    name: Name
    by_url: bool
    answer: Name
    doc: str


@dataclass(frozen=True, slots=True)
class OwnContext:
    """The class of what the handler of something that asks, or that has handles, gets as `ctx`."""

    stem: Name
    what: str
    questions: tuple[AskMethod, ...]
    held: Held | None


def own_contexts(manifest: ir.Manifest) -> tuple[OwnContext, ...]:
    """The contexts of all tools that have handles, and of all primitives that ask something."""
    known = kinds(manifest)
    owning = [(tool, f"the tool ``{tool.name}``") for tool in manifest.tools] + [
        (primitive, f"the {primitive.kind} ``{primitive.key}``") for primitive in modelled(manifest)
    ]
    return tuple(
        OwnContext(
            one.names.stem,
            what,
            tuple(
                AskMethod(Name(question.name), question.schema is None, question.answer, question.message)
                for question in one.questions
            ),
            held(one, known) if isinstance(one, ir.Tool) and one.has_handles else None,
        )
        for one, what in owning
        if one.has_context
    )
