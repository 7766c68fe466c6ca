"""Manifest to files: what a package consists of, and what each of its templates is given.

Takes the IR and what was made of each tool; gives one `Page` for each file, with its imports as data. It lays nothing
out and writes nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolwright import ir, naming
from toolwright.literals import literal
from toolwright.schemas.pointers import steps

if TYPE_CHECKING:
    from toolwright.models import ModelModule, Parameter
    from toolwright.units import Unit

SERVER_RUNTIME = ("asgi", "context", "main", "sdk", "stdio")
CLIENT_RUNTIME = ("binding", "live")

_COMMON_EXPORTS = {
    "._runtime.answers": ("Accepted", "Cancelled", "Declined"),
    "._runtime.errors": ("ToolFailed",),
    ".tools": ("TOOLS",),
}
_SERVER_EXPORTS = {
    "._runtime.content": ("Content", "Gives", "Reply", "Returns", "audio", "embedded", "image", "link", "text"),
    "._runtime.context": ("Context",),
    "._runtime.errors": ("ToolError",),
    ".server": ("asgi_app", "build_server"),
}
OFFER_EXPORTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "completion": {"._runtime.completion": ("Completing",)},
    "prompts": {"._runtime.prompts": ("Messages", "assistant", "user")},
    "resources": {"._runtime.resources": ("Contents",)},
}
_CLIENT_EXPORTS = {
    "._runtime.binding": ("OMIT", "CallEvent", "Omit"),
    "._runtime.callbacks": ("Question",),
    "._runtime.errors": ("CallRefused", "DriftError", "DriftWarning", "InvalidResult"),
    "._runtime.live": (
        "ListChanged",
        "ResourceUpdated",
        "changes",
        "list_prompts",
        "list_resource_templates",
        "list_resources",
        "list_tools",
    ),
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
    """One method of the handlers' interface: `parameters` and `returns` are Python source."""

    name: str
    parameters: tuple[str, ...]
    returns: str
    doc: str
    is_optional: bool = False


@dataclass(frozen=True, slots=True)
class AskMethod:
    """One question as a method: whether it opens a URL, the class of its answer, and what the user reads."""

    name: str
    by_url: bool
    answer: str
    doc: str


@dataclass(frozen=True, slots=True)
class AskingContext:
    """The class of what the handler of something that asks gets as `ctx`."""

    stem: str
    what: str
    questions: tuple[AskMethod, ...]


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


def plan(
    manifest: ir.Manifest,
    units: Mapping[str, Unit],
    offer_units: Sequence[Unit],
    shared: Mapping[str, ModelModule],
) -> tuple[Page, ...]:
    """The pages of the package that `manifest` asks for, but for the tools' own modules, which the units have.

    Args:
        manifest: The lowered manifest.
        units: What was made of each tool, by its name on the wire.
        offer_units: What was made of each resource, resource template and prompt that the client has methods for.
        shared: The model module of each shared schema that has classes, by its name under `schemas`.
    """
    title = f"the MCP server `{manifest.server['name']}`"
    pages = [
        Page("__init__.py", "__init__.py", _package(manifest, title, units, offer_units, shared)),
        Page("models/__init__.py", "__init__.py", _models(title, manifest, units, offer_units, shared)),
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
        offers = offered(manifest)
        pages += [
            Page(f"models/{folder}/__init__.py", "module.py", {"source": f'"""Models of the {folder} of {title}."""'})
            for folder in sorted({_folder(offer) for offer in modelled(manifest)})
        ]
        if contexts := _contexts(manifest):
            answers = sorted({one.answer for each in contexts for one in each.questions if not one.by_url})
            doc = f"What handlers of {title} that ask something get as `ctx`."
            pages.append(Page("contexts.py", "contexts.py", {"doc": doc, "contexts": contexts, "answers": answers}))
        if offers:
            pages.append(Page("offers.py", "offers.py", _offers(title, manifest)))
        pages += [
            Page("handlers.py", "handlers.py", _handlers(title, manifest)),
            Page(
                "server.py",
                "server.py",
                {
                    "doc": f"{_sentence(title)}, as an object of the SDK and as an ASGI application.",
                    "stem": manifest.stem,
                    "offers": bool(offers),
                    "calls": manifest.calls,
                    "optional": not _required(manifest),
                },
            ),
            Page(
                "__main__.py",
                "__main__.py",
                {
                    "doc": f"Run {title}: `python -m {manifest.package}`, on stdio, or over HTTP with `--http`.",
                    "package": manifest.package,
                    "handlers": manifest.handlers,
                    "offers": bool(offers),
                },
            ),
        ]
        if has_examples(manifest):
            doc = f"The examples of {title} as tests of its handlers: `pytest --pyargs {manifest.package}`."
            values = {"doc": doc, "handlers": manifest.handlers, "offers": bool(offers)}
            pages.append(Page("test_examples.py", "test_examples.py", values))
    if "client" in manifest.emit:
        methods = [units[tool.name].method for tool in manifest.tools] + [unit.method for unit in offer_units]
        pages.append(Page("client.py", "client.py", _client(title, manifest, units, offer_units), tuple(methods)))
    return tuple(pages)


def offered(manifest: ir.Manifest) -> frozenset[str]:
    """The runtime modules of the parts that the server has beside its tools."""
    parts = set()
    if manifest.resources or manifest.templates or _has_capability(manifest, "resources"):
        parts.add("resources")
    if manifest.prompts or _has_capability(manifest, "prompts"):
        parts.add("prompts")
    if any(offer.completed for offer in _every(manifest)) or _has_capability(manifest, "completions"):
        parts.add("completion")
    return frozenset(parts)


def has_examples(manifest: ir.Manifest) -> bool:
    """Whether some tool has an example that can be a test."""
    return any(tool.examples for tool in manifest.tools)


def modelled(manifest: ir.Manifest) -> tuple[ir.Offer, ...]:
    """The prompts and resource templates whose handlers get a model."""
    return tuple(offer for offer in _every(manifest) if offer.has_model)


def offer_module(offer: ir.Offer) -> str:
    """The module of an offer's models, below `models`."""
    return f"{_folder(offer)}.{offer.names.module}"


def _folder(offer: ir.Offer) -> str:
    return "prompts" if offer.kind == "prompt" else "resources"


def _every(manifest: ir.Manifest) -> tuple[ir.Offer, ...]:
    return (*manifest.resources, *manifest.templates, *manifest.prompts)


def _has_capability(manifest: ir.Manifest, name: str) -> bool:
    return (manifest.server.get("capabilities") or {}).get(name) is True


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


def _package(
    manifest: ir.Manifest,
    title: str,
    units: Mapping[str, Unit],
    offer_units: Sequence[Unit],
    shared: Mapping[str, ModelModule],
) -> Mapping[str, Any]:
    homes: dict[str, list[str]] = defaultdict(list)
    tables: list[Mapping[str, Sequence[str]]] = [_COMMON_EXPORTS]
    if "server" in manifest.emit:
        tables += [_SERVER_EXPORTS, {".handlers": (f"{manifest.stem}Handlers",)}]
        tables += [OFFER_EXPORTS[part] for part in sorted(offered(manifest))]
        tables.append({".contexts": [f"{each.stem}Context" for each in _contexts(manifest)]})
    if "client" in manifest.emit:
        tables += [_CLIENT_EXPORTS, {".client": (f"{manifest.stem}Client",)}]
    made = [unit.classes for unit in (*units.values(), *offer_units)] + [module.classes for module in shared.values()]
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
    title: str,
    manifest: ir.Manifest,
    units: Mapping[str, Unit],
    offer_units: Sequence[Unit],
    shared: Mapping[str, ModelModule],
) -> Mapping[str, Any]:
    homes: dict[str, list[str]] = {f".{tool.names.module}": list(units[tool.name].classes) for tool in manifest.tools}
    homes |= {
        f".shared.{schema.names.module}": list(shared[schema.name].classes)
        for schema in manifest.shared
        if schema.name in shared
    }
    homes |= {f".{unit.home}": list(unit.classes) for unit in offer_units if unit.classes}
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


def _offers(title: str, manifest: ir.Manifest) -> Mapping[str, Any]:
    parts = offered(manifest)
    completing = [
        ("prompt" if offer in manifest.prompts else "template", offer.key, naming.completion(offer.names))
        for offer in _every(manifest)
        if offer.completes
    ]
    return {
        "doc": f"What {title} offers beside its tools.",
        "parts": [part for part in ("completion", "prompts", "resources") if part in parts],
        "resources": [(offer.key, offer.names.method if offer.handled else None) for offer in manifest.resources],
        "templates": [
            (offer.key, offer.names.method, offer_module(offer), naming.arguments(offer.names, offer.kind))
            for offer in manifest.templates
        ],
        "prompts": [
            (
                (offer.key, offer.names.method, offer_module(offer), naming.arguments(offer.names, offer.kind))
                if offer.handled
                else (offer.key, None, None, None)
            )
            for offer in manifest.prompts
        ],
        "completing": completing,
    }


def _contexts(manifest: ir.Manifest) -> tuple[AskingContext, ...]:
    asking = [(tool, f"the tool ``{tool.name}``") for tool in manifest.tools] + [
        (offer, f"the {offer.kind} ``{offer.key}``") for offer in modelled(manifest)
    ]
    return tuple(
        AskingContext(
            one.names.stem,
            what,
            tuple(
                AskMethod(question.name, question.schema is None, question.answer, question.message)
                for question in one.questions
            ),
        )
        for one, what in asking
        if one.questions
    )


def handler_methods(manifest: ir.Manifest) -> tuple[HandlerMethod, ...]:
    """The methods that the handlers must have."""
    methods = [
        HandlerMethod(
            name=tool.names.method,
            parameters=(f"args: {input_class(tool)}", f"ctx: {_context(tool)}"),
            returns=f"Returns[{output_class(tool) or 'Content'}]",
            doc=_tool_doc(tool) + (f"\n\nNeed not be written: it is the HTTP call `{tool.call}`." if tool.call else ""),
            is_optional=tool.call is not None,
        )
        for tool in manifest.tools
    ]
    methods += [_offer_method(offer) for offer in _every(manifest) if offer.handled]
    methods += [
        HandlerMethod(
            name=naming.completion(offer.names),
            parameters=("args: Completing", "ctx: Context"),
            returns="Gives[Sequence[str]]",
            doc=f"What clients may offer for the arguments of the {offer.kind} ``{offer.key}``.",
        )
        for offer in _every(manifest)
        if offer.completes
    ]
    return tuple(methods)


def _handlers(title: str, manifest: ir.Manifest) -> Mapping[str, Any]:
    methods = handler_methods(manifest)
    used = {
        name
        for method in methods
        for text in (*[parameter.partition(": ")[2] for parameter in method.parameters], method.returns)
        for name in text.replace("[", " ").replace("]", " ").split()
    } - {"str"}
    homes: dict[str, list[str]] = {module: sorted(used & set(names)) for module, names in _HANDLER_HOMES.items()}
    homes[".contexts"] = sorted(used & {f"{each.stem}Context" for each in _contexts(manifest)})
    homes[".models"] = sorted(used - {name for names in homes.values() for name in names})
    abc = homes.pop("collections.abc")
    return {
        "doc": f"What {title} needs from you: {_needs(manifest)}.",
        "stem": manifest.stem,
        "class_doc": _HANDLERS_DOC,
        "abc": abc,
        "imports": _homes(homes),
        "methods": methods,
        "optional": any(method.is_optional for method in methods),
        "abstract": not all(method.is_optional for method in methods),
    }


_HANDLER_HOMES = {
    "collections.abc": ("Sequence",),
    "._runtime.completion": ("Completing",),
    "._runtime.content": ("Content", "Gives", "Returns"),
    "._runtime.context": ("Context",),
    "._runtime.prompts": ("Messages",),
    "._runtime.resources": ("Contents",),
}


def _needs(manifest: ir.Manifest) -> str:
    called = "tool that is no HTTP call" if manifest.calls else "tool"
    kinds = [called] if any(tool.call is None for tool in manifest.tools) else []
    kinds += dict.fromkeys(offer.kind for offer in _every(manifest) if offer.handled)
    if kinds:
        return f"one method for each {_listed(kinds)}"
    return "nothing, but what should go before an HTTP call" if manifest.calls else "nothing"


def _required(manifest: ir.Manifest) -> bool:
    """Whether the server needs handlers."""
    needing = any(offer.handled or offer.completes for offer in _every(manifest))
    return needing or any(tool.call is None for tool in manifest.tools)


def _listed(parts: Sequence[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)


def _context(one: ir.Tool | ir.Offer) -> str:
    return f"{one.names.stem}Context" if one.questions else "Context"


def _offer_method(offer: ir.Offer) -> HandlerMethod:
    is_prompt = offer.kind == "prompt"
    parameters = [f"ctx: {_context(offer)}"]
    if offer.arguments is not None:
        parameters.insert(0, f"{'args' if is_prompt else 'params'}: {naming.arguments(offer.names, offer.kind)}")
    return HandlerMethod(
        name=offer.names.method,
        parameters=tuple(parameters),
        returns="Gives[Messages]" if is_prompt else "Gives[Contents]",
        doc=_offer_doc(offer),
    )


def _offer_doc(offer: ir.Offer) -> str:
    """The manifest's own words, then what it is on the wire."""
    definition = offer.definition
    facts = f"{_sentence(offer.kind)} ``{offer.key}``."
    deprecation = _deprecation(offer)
    said = definition.get("description") or (f"{definition['title']}." if definition.get("title") else "")
    facts += f" {deprecation}" if deprecation else ""
    return f"{said.strip()}\n\n{facts}" if isinstance(said, str) and said.strip() else facts


_HANDLERS_DOC = """Inherit from this class and write its methods: `async def`, or `def` to run in a worker thread.

`raise ToolError(text)` tells the caller what went wrong; of any other exception the caller learns nothing. An
object that is an async context manager is entered when the server starts and left when it stops."""


_PROTOCOL_TYPES = frozenset(
    {"BlobResourceContents", "Completion", "ContentBlock", "PromptMessage", "TextResourceContents"}
)


def _client(
    title: str, manifest: ir.Manifest, units: Mapping[str, Unit], offer_units: Sequence[Unit]
) -> Mapping[str, Any]:
    names = {name for unit in (*units.values(), *offer_units) for name in unit.names}
    outputs = {name for tool in manifest.tools if (name := output_class(tool))}
    typing = names & {"Any", "Literal"}
    abc = names & {"Mapping", "Sequence"}
    protocol = names & _PROTOCOL_TYPES
    homes: dict[str, Sequence[str]] = {
        "collections.abc": sorted(abc),
        "mcp_types": sorted(protocol),
        ".models": sorted((names | outputs) - typing - abc - protocol - {"Omit"}),
    }
    offers = ", resource and prompt" if offer_units else ""
    return {
        "doc": f"A typed client of {title}.",
        "stem": manifest.stem,
        "class_doc": f"""Calls {title}: one method for each tool{offers}.

    async with {manifest.stem}Client.connect(target) as {manifest.package.removesuffix("_mcp")}:
        ...

The target is a URL, a command as a list of strings, or a server object in the same process. What a call leaves out
is left out of the request. Results are checked against the tool's output schema.""",
        "typing": sorted(typing | ({"TYPE_CHECKING"} if any(homes.values()) else set()), key=_import_order),
        "deprecates": any(
            deprecated is not None
            for deprecated in [one.deprecated for one in manifest.tools] + [one.deprecated for one in _every(manifest)]
        ),
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


def offer_methods(offer: ir.Offer) -> tuple[ClientMethod, ...]:
    """What the client has for a resource, a resource template or a prompt: its own method, and one that completes."""
    arguments = offer.arguments or ()
    names = naming.fields(argument.name for argument in arguments)
    ordered = sorted(arguments, key=lambda argument: not argument.required)
    described = [f"    {names[one.name]}: {_indented(one.description)}" for one in ordered if one.description]
    doc = "\n".join([_offer_doc(offer), "", "Args:", *described]) if described else _offer_doc(offer)
    is_prompt = offer.kind == "prompt"
    sent = tuple(f"{literal(argument.name)}: {names[argument.name]}" for argument in ordered)
    call = "_prompt" if is_prompt else "_read" if offer.arguments is None else "_read_from"
    own = ClientMethod(
        name=offer.names.method,
        signature=("self", *(["*"] if ordered else []), *(_offer_parameter(one, names[one.name]) for one in ordered)),
        returns="list[PromptMessage]" if is_prompt else "list[TextResourceContents | BlobResourceContents]",
        call=call,
        arguments=(literal(offer.key), *([] if call == "_read" else [sent])),
        deprecated=_deprecation(offer),
        doc=doc,
    )
    if not offer.completed:
        return (own,)
    kind = literal("prompt" if is_prompt else "template")
    completing = ClientMethod(
        name=naming.completion(offer.names),
        signature=(
            "self",
            f"argument: Literal[{', '.join(map(literal, offer.completed))}]",
            "value: str",
            "given: Mapping[str, str] | None = None",
        ),
        returns="Completion",
        call="_complete",
        arguments=(kind, literal(offer.key), "argument", "value", "given"),
        deprecated=None,
        doc=f"What may stand for an argument of the {offer.kind} ``{offer.key}``.\n\nArgs:\n"
        "    argument: Which one.\n    value: What stands there so far.\n"
        "    given: The other arguments, as far as they are known.",
    )
    return own, completing


def _offer_parameter(argument: ir.Argument, name: str) -> str:
    kind = "Sequence[str]" if argument.many else "str"
    return f"{name}: {kind}{'' if argument.required else ' | Omit = OMIT'}"


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
    facts = " ".join(filter(None, (facts, *_limits(tool), _deprecation(tool))))
    title = tool.definition.get("title")
    words = tool.description or (f"{title}." if isinstance(title, str) and title else "")
    return f"{words.strip()}\n\n{facts}" if words.strip() else facts


def _limits(tool: ir.Tool) -> Iterator[str]:
    """What the tool's policy means for whoever writes it or calls it."""
    if tool.policy.get("confirm"):
        yield "The server asks the user for leave first."
    arguments = tool.input.wire.get("properties") or {}
    redacted = [pointer for pointer in tool.policy.get("redact") or () if steps(f"{pointer}/")[1] in {*arguments, ""}]
    if redacted:
        yield f"Never logged: {', '.join(f'``{pointer}``' for pointer in redacted)}."


_HINTS = (
    ("readOnlyHint", True, "read-only"),
    ("destructiveHint", True, "destructive"),
    ("destructiveHint", False, "not destructive"),
    ("idempotentHint", True, "idempotent"),
    ("openWorldHint", True, "open world"),
    ("openWorldHint", False, "closed world"),
)


def _deprecation(tool: ir.Tool | ir.Offer) -> str | None:
    if tool.deprecated is None:
        return None
    since = f" since {tool.deprecated['since']}" if "since" in tool.deprecated else ""
    use = f"; use {tool.deprecated['use']}" if "use" in tool.deprecated else ""
    reason = " ".join(str(tool.deprecated.get("reason", "")).split())
    return f"Deprecated{since}{use}.{' ' if reason else ''}{reason}"


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
