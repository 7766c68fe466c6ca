"""What a package consists of: its parts, its runtime modules, and the names that its pages share.

Takes the IR; judges nothing and words nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolwright.pycode import Name

if TYPE_CHECKING:
    from toolwright import ir

SERVER_RUNTIME = ("asgi", "context", "main", "sdk", "stdio")


CLIENT_RUNTIME = ("binding", "live")


def input_class(tool: ir.Tool) -> Name:
    """The class of a tool's arguments."""
    return tool.names.stem + "Input"


def output_class(tool: ir.Tool) -> Name | None:
    """The class of a tool's structured result; None where it has no output schema."""
    return tool.names.stem + "Output" if tool.output is not None else None


def offered(manifest: ir.Manifest) -> frozenset[str]:
    """The runtime modules of the parts that the server has beside its tools."""
    parts = set()
    if manifest.resources or manifest.templates or _has_capability(manifest, "resources"):
        parts.add("resources")
    if manifest.prompts or _has_capability(manifest, "prompts"):
        parts.add("prompts")
    if any(offer.completed for offer in every(manifest)) or _has_capability(manifest, "completions"):
        parts.add("completion")
    return frozenset(parts)


def has_examples(manifest: ir.Manifest) -> bool:
    """Whether some tool has an example that can be a test."""
    return any(tool.examples for tool in manifest.tools)


def modelled(manifest: ir.Manifest) -> tuple[ir.Offer, ...]:
    """The prompts and resource templates whose handlers get a model."""
    return tuple(offer for offer in every(manifest) if offer.has_model)


def every(manifest: ir.Manifest) -> tuple[ir.Offer, ...]:
    """All resources, resource templates and prompts."""
    return (*manifest.resources, *manifest.templates, *manifest.prompts)


def offer_module(offer: ir.Offer) -> Name:
    """The module of an offer's models, below `models`."""
    return Name(f"{folder_of(offer)}.{offer.names.module}")


def folder_of(offer: ir.Offer) -> str:
    """The folder of its models, below `models`."""
    return "prompts" if offer.kind == "prompt" else "resources"


def _has_capability(manifest: ir.Manifest, name: str) -> bool:
    return (manifest.server.get("capabilities") or {}).get(name) is True


def needs_handlers(manifest: ir.Manifest) -> bool:
    """Whether the server needs handlers."""
    needing = any(offer.handled or offer.completes for offer in every(manifest))
    return needing or any(tool.call is None for tool in manifest.tools)


def runtime(manifest: ir.Manifest, imports: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """The runtime modules that the package needs, sorted.

    Args:
        manifest: The lowered manifest.
        imports: For each runtime module, the runtime modules it imports.
    """
    needed = {"__init__", "errors", "lazy", "model", "tools"}
    waiting = [*needed]
    waiting += [*SERVER_RUNTIME, *sorted(offered(manifest))] if "server" in manifest.emit else ()
    waiting += ["http_calls"] if manifest.calls else ()
    waiting += ("example_tests",) if "server" in manifest.emit and has_examples(manifest) else ()
    waiting += CLIENT_RUNTIME if "client" in manifest.emit else ()
    while waiting:
        name = waiting.pop()
        needed.add(name)
        waiting += [other for other in imports[name] if other not in needed]
    return tuple(sorted(needed))


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
    """The contexts of all tools and offers that ask something."""
    asking = [(tool, f"the tool ``{tool.name}``") for tool in manifest.tools] + [
        (offer, f"the {offer.kind} ``{offer.key}``") for offer in modelled(manifest)
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
