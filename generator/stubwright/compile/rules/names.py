"""Rules about names: on the wire, in Python and on disk."""

from __future__ import annotations

import keyword
import re
import sys
from typing import TYPE_CHECKING

from stubwright import dependencies, naming, paths
from stubwright.codegen.pages import exports
from stubwright.compile.handles import find_shared_whole
from stubwright.compile.handles import lower_kinds as declared_kinds
from stubwright.compile.resolve import list_manifests, locate_package
from stubwright.diagnostics import Diagnostic, Place
from stubwright.diagnostics.suggestions import shorten
from stubwright.jsonschema.references import HANDLE
from stubwright_runtime.mcp import vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stubwright.compile.resolve import Declaration, ResolvedBundle
    from stubwright.jsonschema.references import Outline

_LONGEST = 255
"""Maximum file name length in bytes."""

_TOOL_NAME = re.compile(vocabulary.TOOL_NAME)


def check_unique_on_the_wire(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that tool names, prompt names and resource URIs are unique."""
    first: dict[tuple[str, str], Place] = {}
    for declared in resolved.declared:
        kind, place = declared.section.noun, declared.place / declared.section.key
        other = first.get((kind, declared.key))
        if other is None:
            first[kind, declared.key] = place
        else:
            prefixed = ", or include its file with a `prefix`" if declared.section.key == "name" else ""
            message = f"the {kind} `{declared.key}` is already declared at {_format_place(resolved, other)}"
            yield Diagnostic("SW210", message, place, f"rename one{prefixed}")


def check_unique_in_python(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that no two tools, prompts or resources have the same method, class or module name."""
    first: dict[tuple[str, str], tuple[str, Declaration]] = {}
    for declared in resolved.declared:
        kind, names = declared.section.noun, declared.names
        kinds: list[tuple[str, str, str]] = [
            ("method", names.method, names.method),
            ("class", naming.name_input_class(names), naming.name_input_class(names)),
            ("module", names.module, names.module.casefold()),  # often, `A.py` and `a.py` are one file
        ]
        kinds += [("class", name, name) for name in _list_classes(declared)]
        if declared.extension.get("complete"):
            kinds.append(("method", naming.name_completion(names), naming.name_completion(names)))
        for part, shown, key in kinds:
            other_kind, other = first.setdefault((part, key), (kind, declared))
            if other is not declared and (kind, declared.name) != (other_kind, other.name):
                both = f"{kind}s" if kind == other_kind else other_kind
                yield Diagnostic(
                    "SW211",
                    f"the {both} `{other.name}` ({_format_place(resolved, other.place / 'name')}) and "
                    f"{'' if kind == other_kind else f'the {kind} '}`{declared.name}` have the same name in "
                    f"Python: the {part} `{shown}`",
                    _locate_name(declared),
                    "add a `pythonName` to one, under `stubwright`",
                )
                break


def _list_classes(declared: Declaration) -> Iterator[str]:
    """Yield a declaration's classes, except the classes for a tool's arguments and result."""
    if declared.extension.get("ask"):
        yield naming.ask_class(declared.names)
        yield naming.name_context_class(declared.names)
        yield from (naming.answer(declared.names, question) for question in declared.extension["ask"])
    if declared.section in (vocabulary.PROMPTS, vocabulary.TEMPLATES):
        yield naming.name_arguments(declared.names, declared.section.noun)


def check_unique_classes(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that shared schemas' classes do not clash with the package's other exports."""
    stem = naming.name_server_stem(resolved.entry["server"]["name"])
    taken: dict[str, str] = dict.fromkeys(exports.ALWAYS, "every package exports")
    taken[naming.name_handlers_class(stem)] = "is the handler class of this server"
    taken[naming.name_client_class(stem)] = "is the client class of this server"
    for tool in resolved.tools:
        for field, _ in resolved.list_schemas(tool):
            class_name = naming.name_input_class if field == "inputSchema" else naming.name_output_class
            taken[class_name(tool.names)] = f"is the {field} class of `{tool.name}`"
    for declared in resolved.declared:
        taken |= dict.fromkeys(_list_classes(declared), f"is a class of `{declared.name}`")
    kinds = dict.fromkeys(
        name for _, manifest in list_manifests(resolved.bundle) for name in manifest.get("handles") or ()
    )
    if kinds:
        taken |= dict.fromkeys(exports.OF_HANDLES, "every package with handles exports")
    paginated = [tool for tool in resolved.tools if "paginate" in tool.extension]
    if paginated:
        taken |= dict.fromkeys(exports.OF_PAGES, "every package with pages exports")
        taken |= {naming.name_context_class(tool.names): f"is a class of `{tool.name}`" for tool in paginated}
        taken |= {
            naming.name_own_handles_class(tool.names): f"is the handles class of `{tool.name}`"
            for tool in resolved.tools
        }
        taken |= {naming.name_context_class(tool.names): f"is a class of `{tool.name}`" for tool in resolved.tools}
    yield from _check_id_types(resolved, taken)
    taken |= {naming.handle_id(kind): f"is the ID type of `{kind}`" for kind in kinds}
    taken |= {
        naming.name_shared_class(naming.name_shared(kind.state)): f"is the state class of `{kind.name}`"
        for kind, at in declared_kinds(resolved)
        if find_shared_whole(resolved.extension_schemas[at]) is None
    }
    first: dict[str, Outline] = {}
    for key, outline in resolved.shared.items():
        name = naming.name_shared_class(naming.name_shared(key.name))
        other = first.setdefault(name, outline)
        problem = "is a keyword" if keyword.iskeyword(name) else taken.get(name)
        kind = outline.schema.get(HANDLE) if isinstance(outline.schema, dict) else None
        if isinstance(kind, str) and naming.handle_id(kind) == name:
            problem = None  # the schema for IDs has no class
        if problem is None and other is not outline:
            problem = (
                f"is the class of `{other.place.pointer[-1]}` at {_format_place(resolved, other.place.point_at_key())}"
            )
        if problem:
            yield Diagnostic(
                "SW212",
                f"the class of the shared schema `{key.name}` would be `{name}`, which {problem}",
                outline.place.point_at_key(),
                "rename the schema under `schemas`",
            )


def _check_id_types(resolved: ResolvedBundle, taken: Mapping[str, str]) -> Iterator[Diagnostic]:
    """Check that handles' ID types have unique names, and that kinds are valid attribute names."""
    first: dict[str, Place] = {}
    for path, manifest in list_manifests(resolved.bundle):
        for kind in manifest.get("handles") or ():
            place = Place(path, ("handles", kind), "key")
            name = naming.handle_id(kind)
            other = first.setdefault(name, place)
            if other == place:
                problem = taken.get(name, "")
            else:  # only on failure, since finding the line reparses the file
                problem = f"is the ID type of `{other.pointer[-1]}` at {_format_place(resolved, other)}"
            if problem:
                message = f"the ID type of the handle `{kind}` would be `{name}`, which {problem}"
                yield Diagnostic("SW212", message, place, "rename the handle")
            if kind.startswith("_"):
                message = f"the handle `{kind}` starts with an underscore, which is reserved"
                yield Diagnostic("SW213", message, place, "rename the handle")


def check_python_names(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that no `pythonName` is reserved."""
    for tool in resolved.declared:
        name = tool.extension.get("pythonName")
        if name is None:
            continue
        if keyword.iskeyword(name):
            problem = "is a keyword"
        elif name.startswith("_"):
            problem = "starts with an underscore"
        elif name in naming.CLIENT_NAMES:
            problem = "is a member of every client"
        elif name in naming.ANNOTATION_NAMES:
            problem = "is the name of a type used in annotations"
        elif name in naming.DECORATOR_NAMES:
            problem = "is the name of a decorator"
        elif name in naming.HANDLER_NAMES:
            problem = "is the method that wraps all other handlers"
        else:
            continue
        suggestion = naming.name_method(name)
        yield Diagnostic(
            "SW213", f"the `pythonName` `{name}` {problem}", tool.place_of("pythonName"), f"use `{suggestion}`"
        )


def check_package(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that the package can be imported and does not shadow another package."""
    name, place = _get_package(resolved)
    written = "package" in place.pointer
    suggestion = naming.name_package(resolved.entry["server"]["name"])
    fix = (
        f"use `{suggestion}`, derived from the server's name"
        if written and naming.is_importable(suggestion)
        else "write a `python.package`"
    )
    if not naming.is_importable(name):
        yield Diagnostic("SW214", f"`{name}` is not a valid Python package name", place, fix)
    elif name in sys.stdlib_module_names:
        yield Diagnostic("SW215", f"`{name}` would shadow the module `{name}` of Python's standard library", place, fix)
    elif name in dependencies.list_modules():
        yield Diagnostic(
            "SW215", f"`{name}` would shadow the package `{name}`, which the generated code needs", place, fix
        )


def _get_package(resolved: ResolvedBundle) -> tuple[str, Place]:
    written = (resolved.entry.get("python") or {}).get("package")
    name = written or naming.name_package(resolved.entry["server"]["name"])
    return name, locate_package(resolved.bundle.entry, resolved.entry)


def check_writable(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that file names are not too long, and that the package name is not reserved on Windows."""
    package_name, at = _get_package(resolved)
    if paths.is_device(package_name):
        message = f"`{package_name}` cannot be created on Windows, which reserves this name"
        yield Diagnostic("SW406", message, at, f"use `{package_name.lower()}_mcp`")
    named = [(package_name, at, "write a shorter `python.package`")]
    declared = [*resolved.tools]
    if resolved.serves:
        declared += [*resolved.primitives[vocabulary.TEMPLATES], *resolved.primitives[vocabulary.PROMPTS]]
    fix = "shorten it, or write a `pythonName` under `stubwright`"
    named += [(f"{each.names.module}.py", _locate_name(each), fix) for each in declared]
    shared = [
        (naming.name_shared(key.name).module, outline.place.point_at_key()) for key, outline in resolved.shared.items()
    ]
    named += [(f"{module}.py", place, "rename the schema under `schemas`") for module, place in shared]
    for name, place, help_ in named:
        if (length := len(name.encode())) > _LONGEST:
            message = (
                f"`{shorten(name)}` cannot be created: its name has {length} bytes; most file systems allow {_LONGEST}"
            )
            yield Diagnostic("SW406", message, place, help_)


def check_handlers(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that `python.handlers` has the entry point format `module:Name`."""
    text = (resolved.entry.get("python") or {}).get("handlers")
    if text is None:
        return
    module, colon, name = text.partition(":")
    if not (
        colon and all(map(naming.is_importable, module.split("."))) and all(map(naming.is_importable, name.split(".")))
    ):
        yield Diagnostic(
            "SW216",
            f"`{text}` is not `module:Name`",
            Place(resolved.bundle.entry, ("python", "handlers")),
            'write the module, a colon and the class, such as "weather:Weather"',
        )


def report_features(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Warn about `python.features`, which the next release rejects."""
    if "features" in (resolved.entry.get("python") or {}):
        yield Diagnostic(
            "SW342",
            "`python.features` has no effect: every package has all features",
            Place(resolved.bundle.entry, ("python", "features")).point_at_key(),
            "remove it; the next release rejects it",
        )


def check_wire_names(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that tool names follow MCP's SHOULDs (2025-11-25, Tools, Tool Names)."""
    for tool in resolved.tools:
        place = tool.place / "name"
        if not _TOOL_NAME.fullmatch(tool.name):
            yield Diagnostic(
                "SW310",
                f"the tool name {_describe_problem(tool.name, r'[A-Za-z0-9_.-]', 128)}",
                place,
                "use 1 to 128 of the characters A-Z, a-z, 0-9, `_`, `-` and `.`, as MCP recommends",
            )


def _describe_problem(name: str, allowed: str, longest: int) -> str:
    strange = sorted(set(re.sub(allowed, "", name)))
    if strange:
        return f"`{name}` has {', '.join('a space' if char == ' ' else f'`{char}`' for char in strange[:5])}"
    return f"`{name}` has {len(name)} characters, more than {longest}"


def _locate_name(tool: Declaration) -> Place:
    return tool.place_of("pythonName") if "pythonName" in tool.extension else tool.place / "name"


def _format_place(resolved: ResolvedBundle, place: Place) -> str:
    span = resolved.bundle.documents[place.file].find_span(place)
    return f"{span.file}:{span.line}"
