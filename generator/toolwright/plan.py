"""Manifest to files: what a package consists of, and what each of its templates is given.

Takes the IR and what was made of each tool; gives one `Page` for each file, with its imports as data. It lays nothing
out and writes nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolwright import ir
from toolwright.literals import literal

if TYPE_CHECKING:
    from toolwright.models import ModelModule, Parameter
    from toolwright.units import Unit

SERVER_RUNTIME = ("context", "main", "sdk", "stdio")
CLIENT_RUNTIME = ("binding",)

_COMMON_EXPORTS = {
    "._runtime.errors": ("ToolFailed",),
    ".tools": ("TOOLS",),
}
_SERVER_EXPORTS = {
    "._runtime.content": ("Content", "Reply", "Returns", "audio", "embedded", "image", "link", "text"),
    "._runtime.context": ("Context",),
    "._runtime.errors": ("ToolError",),
    ".server": ("asgi_app", "build_server"),
}
_CLIENT_EXPORTS = {
    "._runtime.binding": ("OMIT", "CallEvent", "Omit"),
    "._runtime.errors": ("CallRefused", "InvalidResult"),
}


@dataclass(frozen=True, slots=True)
class Home:
    """A module, relative to the one that imports from it, and the names taken from it."""

    module: str
    names: tuple[str, ...]

    @property
    def exports(self) -> list[str]:
        """The names as a package imports them that means to export them."""
        return [f"{name} as {name}" for name in self.names]

    @property
    def literals(self) -> list[str]:
        """The names as Python source."""
        return [literal(name) for name in self.names]


@dataclass(frozen=True, slots=True)
class Page:
    """One file of a package: where it goes, its template, and what the template is given.

    `tail` has parts that are formatted already, which follow what the template gives with an empty line before each.
    """

    path: str
    template: str
    values: Mapping[str, Any]
    tail: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HandlerMethod:
    """One method of the handlers' interface."""

    name: str
    input: str
    returns: str
    doc: str


@dataclass(frozen=True, slots=True)
class ClientMethod:
    """One method of the client: its `signature`, and the method of the base that it calls with `arguments`.

    Both are lists of Python source; an entry that is a list itself has the entries of a dictionary.
    """

    name: str
    signature: tuple[str, ...]
    returns: str
    call: str
    arguments: tuple[str | tuple[str, ...], ...]
    deprecated: str | None
    doc: str


@dataclass(frozen=True, slots=True)
class ToolRow:
    """One row of the package's table of tools."""

    name: str
    method: str
    module: str
    input: str
    output: str | None


def input_class(tool: ir.Tool) -> str:
    """The class of a tool's arguments."""
    return f"{tool.names.stem}Input"


def output_class(tool: ir.Tool) -> str | None:
    """The class of a tool's structured result; None where it has no output schema."""
    return f"{tool.names.stem}Output" if tool.output is not None else None


def plan(manifest: ir.Manifest, units: Mapping[str, Unit], shared: Mapping[str, ModelModule]) -> tuple[Page, ...]:
    """The pages of the package that `manifest` asks for, but for the tools' own modules, which the units have.

    Args:
        manifest: The lowered manifest.
        units: What was made of each tool, by its name on the wire.
        shared: The model module of each shared schema that has classes, by its name under `schemas`.
    """
    title = f"the MCP server `{manifest.server['name']}`"
    pages = [
        Page("__init__.py", "__init__.py", _package(manifest, title, units, shared)),
        Page("models/__init__.py", "__init__.py", _models(title, manifest, units, shared)),
        Page("tools.py", "tools.py", _tools(title, manifest)),
    ]
    if shared:
        pages.append(
            Page(
                "models/shared/__init__.py",
                "module.py",
                {"source": f'"""Models of the schemas that several tools of {title} share."""'},
            )
        )
        pages += [
            Page(f"models/shared/{schema.names.module}.py", "module.py", {"source": shared[schema.name].source})
            for schema in manifest.shared
            if schema.name in shared
        ]
    if "server" in manifest.emit:
        pages += [
            Page("handlers.py", "handlers.py", _handlers(title, manifest)),
            Page(
                "server.py",
                "server.py",
                {
                    "doc": f"{_sentence(title)}, as an object of the SDK and as an ASGI application.",
                    "stem": manifest.stem,
                },
            ),
            Page(
                "__main__.py",
                "__main__.py",
                {
                    "doc": f"Run {title}: `python -m {manifest.package}`, on stdio, or over HTTP with `--http`.",
                    "package": manifest.package,
                    "handlers": manifest.handlers,
                },
            ),
        ]
    if "client" in manifest.emit:
        methods = tuple(units[tool.name].method for tool in manifest.tools)
        pages.append(Page("client.py", "client.py", _client(title, manifest, units), methods))
    return tuple(pages)


def runtime(manifest: ir.Manifest, imports: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """The runtime modules that the package needs, sorted.

    Args:
        manifest: The lowered manifest.
        imports: For each runtime module, the runtime modules it imports.
    """
    needed = {"__init__", "errors", "lazy", "model", "tools"}
    waiting = [*needed]
    waiting += SERVER_RUNTIME if "server" in manifest.emit else ()
    waiting += CLIENT_RUNTIME if "client" in manifest.emit else ()
    while waiting:
        name = waiting.pop()
        needed.add(name)
        waiting += [other for other in imports[name] if other not in needed]
    return tuple(sorted(needed))


def _package(
    manifest: ir.Manifest, title: str, units: Mapping[str, Unit], shared: Mapping[str, ModelModule]
) -> Mapping[str, Any]:
    homes: dict[str, list[str]] = defaultdict(list)
    tables: list[Mapping[str, Sequence[str]]] = [_COMMON_EXPORTS]
    if "server" in manifest.emit:
        tables += [_SERVER_EXPORTS, {".handlers": (f"{manifest.stem}Handlers",)}]
    if "client" in manifest.emit:
        tables += [_CLIENT_EXPORTS, {".client": (f"{manifest.stem}Client",)}]
    made = [unit.classes for unit in units.values()] + [module.classes for module in shared.values()]
    tables.append({".models": [name for classes in made for name in classes]})
    for table in tables:
        for module, names in table.items():
            homes[module] += names
    return {
        "doc": f"{_sentence(title)}.{_about(manifest)}",
        "lazy": "._runtime.lazy",
        "homes": sorted(_homes(homes), key=lambda home: home.module),
    }


def _models(
    title: str, manifest: ir.Manifest, units: Mapping[str, Unit], shared: Mapping[str, ModelModule]
) -> Mapping[str, Any]:
    homes: dict[str, list[str]] = {f".{tool.names.module}": list(units[tool.name].classes) for tool in manifest.tools}
    homes |= {
        f".shared.{schema.names.module}": list(shared[schema.name].classes)
        for schema in manifest.shared
        if schema.name in shared
    }
    return {
        "doc": f"Models of {title}, each loaded when it is first used.",
        "lazy": ".._runtime.lazy",
        "homes": _homes(homes),
    }


def _tools(title: str, manifest: ir.Manifest) -> Mapping[str, Any]:
    rows = tuple(
        ToolRow(tool.name, tool.names.method, tool.names.module, input_class(tool), output_class(tool))
        for tool in manifest.tools
    )
    return {"doc": f"The tools of {title}, by their names on the wire.", "package": manifest.package, "tools": rows}


def _handlers(title: str, manifest: ir.Manifest) -> Mapping[str, Any]:
    methods = tuple(
        HandlerMethod(
            name=tool.names.method,
            input=input_class(tool),
            returns=output_class(tool) or "Content",
            doc=_tool_doc(tool),
        )
        for tool in manifest.tools
    )
    used = {name for method in methods for name in (method.input, method.returns)}
    homes: dict[str, list[str]] = {
        "._runtime.content": ["Content", "Returns"] if "Content" in used else ["Returns"],
        "._runtime.context": ["Context"],
        ".models": sorted(used - {"Content"}),
    }
    return {
        "doc": f"What {title} needs from you: one method for each tool.",
        "stem": manifest.stem,
        "class_doc": _HANDLERS_DOC,
        "imports": _homes(homes),
        "methods": methods,
    }


_HANDLERS_DOC = """Inherit from this class and write its methods: `async def`, or `def` to run in a worker thread.

`raise ToolError(text)` tells the caller what went wrong; of any other exception the caller learns nothing. An object
that is an async context manager is entered when the server starts and left when it stops."""


def _client(title: str, manifest: ir.Manifest, units: Mapping[str, Unit]) -> Mapping[str, Any]:
    names = {name for unit in units.values() for name in unit.names}
    outputs = {name for tool in manifest.tools if (name := output_class(tool))}
    typing = names & {"Any", "Literal"}
    homes: dict[str, Sequence[str]] = {
        "mcp_types": sorted(names & {"ContentBlock"}),
        ".models": sorted((names | outputs) - typing - {"ContentBlock", "Omit"}),
    }
    return {
        "doc": f"A typed client of {title}.",
        "stem": manifest.stem,
        "class_doc": f"""Calls {title}: one method for each tool.

    async with {manifest.stem}Client.connect(target) as {manifest.package.removesuffix("_mcp")}:
        ...

The target is a URL, a command as a list of strings, or a server object in the same process. What a call leaves out
is left out of the request. Results are checked against the tool's output schema.""",
        "typing": sorted(typing | ({"TYPE_CHECKING"} if any(homes.values()) else set()), key=_import_order),
        "deprecates": any(tool.deprecated is not None for tool in manifest.tools),
        "outputs": bool(outputs),
        "binding": ["OMIT", "Binding", "Omit"] if "Omit" in names else ["Binding"],
        "imports": _homes(homes),
    }


def client_method(tool: ir.Tool, module: ModelModule) -> ClientMethod:
    """A tool as a method of the client."""
    notes = [(parameter.name, _note(parameter)) for parameter in module.parameters]
    described = [f"    {name}: {_indented(note)}" for name, note in notes if note]
    doc = "\n".join([_tool_doc(tool), "", "Args:", *described]) if described else _tool_doc(tool)
    output = output_class(tool)
    sent = tuple(f"{literal(parameter.wire)}: {parameter.name}" for parameter in module.parameters)
    return ClientMethod(
        name=tool.names.method,
        signature=("self", *(["*"] if module.parameters else []), *map(_parameter, module.parameters)),
        returns=output or "list[ContentBlock]",
        call="_call" if output else "_call_content",
        arguments=(literal(tool.name), sent, *([f"_models.{output}"] if output else [])),
        deprecated=_deprecation(tool),
        doc=doc,
    )


def _note(parameter: Parameter) -> str:
    """What the client's method says of a parameter: its own words, and the default that the server applies."""
    if parameter.default is None:
        return parameter.doc
    words = parameter.doc if not parameter.doc or parameter.doc.endswith((".", "!", "?", ":")) else f"{parameter.doc}."
    return f"{words} Default: {parameter.default}.".strip()


def _parameter(parameter: Parameter) -> str:
    return f"{parameter.name}: {parameter.annotation}{'' if parameter.required else ' | Omit = OMIT'}"


def _tool_doc(tool: ir.Tool) -> str:
    """The manifest's own words, then the wire name and the hints, so that they are seen where the method is."""
    hints = [text for hint, value, text in _HINTS if tool.annotations.get(hint) is value]
    facts = f"Tool ``{tool.name}``{': ' if hints else ''}{', '.join(hints)}."
    deprecation = _deprecation(tool)
    if deprecation:
        facts += f" {deprecation}"
    title = tool.definition.get("title")
    words = tool.description or (f"{title}." if isinstance(title, str) and title else "")
    return f"{words.strip()}\n\n{facts}" if words.strip() else facts


_HINTS = (
    ("readOnlyHint", True, "read-only"),
    ("destructiveHint", True, "destructive"),
    ("destructiveHint", False, "not destructive"),
    ("idempotentHint", True, "idempotent"),
    ("openWorldHint", True, "open world"),
    ("openWorldHint", False, "closed world"),
)


def _deprecation(tool: ir.Tool) -> str | None:
    if tool.deprecated is None:
        return None
    since = f" since {tool.deprecated['since']}" if "since" in tool.deprecated else ""
    use = f"; use {tool.deprecated['use']}" if "use" in tool.deprecated else ""
    return f"Deprecated{since}{use}."


def _about(manifest: ir.Manifest) -> str:
    instructions = manifest.server.get("instructions")
    return f"\n\n{instructions.strip()}" if isinstance(instructions, str) and instructions.strip() else ""


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _indented(text: str) -> str:
    return text.replace("\n", "\n        ")


def _homes(table: Mapping[str, Sequence[str]]) -> tuple[Home, ...]:
    return tuple(Home(module, tuple(sorted(set(names), key=_import_order))) for module, names in table.items() if names)


def _import_order(name: str) -> tuple[bool, bool, str]:
    """Constants, then classes, then functions, as import sorters have them."""
    return (not name.isupper(), not name[:1].isupper(), name)
