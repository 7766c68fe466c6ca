"""Names and features of a package that several pages use."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stubwright import ir, naming
from stubwright.codegen.pages.exports import OWN
from stubwright.codegen.pages.handles import find_held, list_kinds
from stubwright.pycode import Name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from stubwright.codegen.pages.handles import ContextHandles


def name_input_class(tool: ir.Tool) -> Name:
    """Return the class name for a tool's arguments."""
    return naming.name_input_class(tool.names)


def name_output_class(tool: ir.Tool) -> Name | None:
    """Return the class name for a tool's result; None if the tool has no output schema."""
    return naming.name_output_class(tool.names) if tool.output is not None else None


def list_primitive_features(manifest: ir.Manifest) -> frozenset[str]:
    """Return the server's features other than tools: `resources`, `prompts` and `completion`."""
    parts = set()
    if manifest.resources or manifest.templates or _has_capability(manifest, "resources"):
        parts.add("resources")
    if manifest.prompts or _has_capability(manifest, "prompts"):
        parts.add("prompts")
    if any(primitive.completed for primitive in list_all(manifest)) or _has_capability(manifest, "completions"):
        parts.add("completion")
    return frozenset(parts)


def list_own_exports(manifest: ir.Manifest, models: Iterable[str]) -> Mapping[str, Sequence[str]]:
    """Return the names that a package itself defines and exports, keyed by module.

    Args:
        manifest: The lowered manifest.
        models: The names that the package's models modules define.
    """
    homes: dict[str, list[str]] = defaultdict(list)
    if manifest.emit:
        homes[".registry"] += OWN["registry"]
    if "server" in manifest.emit:
        homes[".server"] += OWN["server"]
        homes[".handlers"].append(naming.name_handlers_class(manifest.stem))
        homes[".contexts"] += (each.name for each in list_own_contexts(manifest))
    if "client" in manifest.emit:
        homes[".client"].append(naming.name_client_class(manifest.stem))
        homes[".client"] += (naming.name_toolset_client(manifest.stem, name) for name in manifest.toolsets)
    homes[".models"] += (*models, *(handle.id for handle in manifest.handles))
    return homes


def has_examples(manifest: ir.Manifest) -> bool:
    """Return whether a tool has an example that can run as a test."""
    return any(tool.examples for tool in manifest.tools)


def list_modelled(manifest: ir.Manifest) -> tuple[ir.Primitive, ...]:
    """Return the prompts and resource templates whose handlers receive a model."""
    return tuple(primitive for primitive in list_all(manifest) if primitive.has_model)


def list_all(manifest: ir.Manifest) -> tuple[ir.Primitive, ...]:
    """Return all resources, resource templates and prompts."""
    return (*manifest.resources, *manifest.templates, *manifest.prompts)


def _has_capability(manifest: ir.Manifest, name: str) -> bool:
    return (manifest.server.get("capabilities") or {}).get(name) is True


def needs_handlers(manifest: ir.Manifest) -> bool:
    """Return whether at least one handler method is required."""
    needing = any(primitive.handled or primitive.completes for primitive in list_all(manifest))
    return needing or any(tool.call is None for tool in manifest.tools)


@dataclass(frozen=True, slots=True)
class AskMethod:
    """A context's method that asks the user a question.

    Attributes:
        name: The method's name.
        by_url: True if the question opens a URL.
        answer: The answer's class.
        doc: The message to the user.
    """

    name: Name
    by_url: bool
    answer: Name
    doc: str


@dataclass(frozen=True, slots=True)
class OwnContext:
    """The context class for a handler that asks questions, receives handles, or returns pages."""

    names: naming.Names
    what: str
    questions: tuple[AskMethod, ...]
    held: ContextHandles | None
    has_page: bool

    @property
    def name(self) -> Name:
        """The context class's name."""
        return naming.name_context_class(self.names)

    @property
    def ask(self) -> Name:
        """The name of the class for the context's questions."""
        return naming.ask_class(self.names)

    @property
    def handles(self) -> Name:
        """The name of the class for the context's handles, if it needs one of its own."""
        return naming.name_own_handles_class(self.names)


def list_own_contexts(manifest: ir.Manifest) -> tuple[OwnContext, ...]:
    """Return the context classes: for tools with handles or pages, and for all primitives with questions."""
    known = list_kinds(manifest)
    owning = [(tool, f"the tool ``{tool.name}``") for tool in manifest.tools] + [
        (primitive, f"the {primitive.kind} ``{primitive.key}``") for primitive in list_modelled(manifest)
    ]
    return tuple(
        OwnContext(
            primitive.names,
            what,
            tuple(
                AskMethod(Name(question.name), question.schema is None, question.answer, question.message)
                for question in primitive.questions
            ),
            find_held(primitive, known) if isinstance(primitive, ir.Tool) and primitive.has_handles else None,
            isinstance(primitive, ir.Tool) and bool(primitive.paginate),
        )
        for primitive, what in owning
        if primitive.has_context
    )
