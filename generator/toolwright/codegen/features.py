"""What a package consists of: its parts, its runtime modules, and the names that its pages share.

Takes the IR; judges nothing and words nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from toolwright.pycode import Name

if TYPE_CHECKING:
    from toolwright import ir

RUNTIME: Final[Mapping[str, tuple[str, ...]]] = {
    "models": ("errors", "lazy", "model", "package", "terminal", "unions"),
    "tools": (
        "answers",
        "complexity",
        "instances",
        "logs",
        "nesting",
        "patterns",
        "redaction",
        "revisions",
        "texts",
        "validation",
        "violations",
    ),
    "server": (
        "server/asgi",
        "server/calls",
        "server/cancellation",
        "server/confirmation",
        "server/content",
        "server/context",
        "server/dispatcher",
        "server/elicitation",
        "server/features",
        "server/framing",
        "server/handler_check",
        "server/handler_loading",
        "server/invocation",
        "server/lifespan",
        "server/lists",
        "server/main",
        "server/parts",
        "server/replay",
        "server/sanitizing",
        "server/sdk",
        "server/shutdown",
        "server/stdio",
        "server/subscriptions",
        "server/uploads",
    ),
    "resources": ("server/resources",),
    "prompts": ("server/prompts",),
    "completion": ("server/completion",),
    "http": ("http/calls", "http/requests", "http/responses", "http/styles"),
    "examples": ("equality", "server/example_tests"),
    "client": (
        "client/arguments",
        "client/audit",
        "client/binding",
        "client/bounded_transports",
        "client/bounds",
        "client/callbacks",
        "client/confirmation",
        "client/drift",
        "client/elicitation",
        "client/guarded",
        "client/in_flight",
        "client/input_required",
        "client/lenient",
        "client/lines",
        "client/live",
        "client/mirrored_headers",
        "client/network",
        "client/options",
        "client/pages",
        "client/results",
        "client/session",
        "client/subscriptions",
        "client/thinning",
        "client/transport",
    ),
}
"""The modules of the runtime that each feature of a package needs beside those of the features above it."""


def input_class(tool: ir.Tool) -> Name:
    """The class of a tool's arguments."""
    return tool.names.stem + "Input"


def output_class(tool: ir.Tool) -> Name | None:
    """The class of a tool's structured result; None where it has no output schema."""
    return tool.names.stem + "Output" if tool.output is not None else None


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
    used = {"models", *sorted(manifest.emit)}
    if "server" in manifest.emit:
        used |= {*primitive_features(manifest), *(("http",) if manifest.calls else ())}
        used |= {"examples"} if has_examples(manifest) else set()
    if manifest.emit:
        used.add("tools")
    return tuple(feature for feature in RUNTIME if feature in used)


def runtime(manifest: ir.Manifest) -> tuple[str, ...]:
    """The runtime modules that the package of a manifest needs, as paths below `_runtime` without `.py`, sorted."""
    modules = {module for feature in features(manifest) for module in RUNTIME[feature]}
    folders = {f"{module.rpartition('/')[0]}/__init__" for module in modules if "/" in module}
    return tuple(sorted({"__init__", *folders, *modules}))


@dataclass(frozen=True, slots=True)
class AskMethod:
    """One question as a method: whether it opens a URL, the class of its answer, and what the user reads."""

    name: Name
    by_url: bool
    answer: Name
    doc: str


@dataclass(frozen=True, slots=True)
class AskingContext:
    """The class of what the handler of something that asks gets as `ctx`."""

    stem: Name
    what: str
    questions: tuple[AskMethod, ...]


def asking_contexts(manifest: ir.Manifest) -> tuple[AskingContext, ...]:
    """The contexts of all primitives that ask something."""
    asking = [(tool, f"the tool ``{tool.name}``") for tool in manifest.tools] + [
        (primitive, f"the {primitive.kind} ``{primitive.key}``") for primitive in modelled(manifest)
    ]
    return tuple(
        AskingContext(
            one.names.stem,
            what,
            tuple(
                AskMethod(Name(question.name), question.schema is None, question.answer, question.message)
                for question in one.questions
            ),
        )
        for one, what in asking
        if one.questions
    )
