"""Maps wire names to Python names; no other module creates names.

A name depends only on its wire name, never on its neighbors or their order. There is one exception: if two properties
of a class have the same attribute, `name_fields` spells out the characters that identifiers cannot contain. Names are
never numbered.
"""

from __future__ import annotations

import hashlib
import keyword
import re
import unicodedata
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from stubwright import paths
from stubwright.pycode import Name

_STEP = re.compile(r"(?<=[^\W\d_A-Z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][^\W\d_A-Z])")
_NO_WORD = re.compile(r"[\W_]+")
_PLAIN = re.compile(r"[A-Za-z0-9_]*")
_GAPS = re.compile(r"\0+")

ANNOTATION_NAMES = frozenset({"bool", "bytes", "dict", "float", "int", "list", "str", "tuple"})
"""Names in annotations; a class member with such a name would hide the type from later members."""

CLIENT_NAMES = frozenset({"call_for", "connect", "raw", "tasks", "tools_for", "with_options", "with_raw_response"})
"""Members of a client other than its tools."""

DECORATOR_NAMES = frozenset({"abstractmethod", "deprecated"})
"""Decorators on tool methods; a method with such a name would hide the decorator from later methods."""

HANDLER_NAMES = frozenset({"around"})
"""Handler methods that do not belong to a tool, prompt or resource."""

CONTEXT = Name("Context")
"""The class of `ctx` in handlers without questions."""

MAPPING_NAMES = frozenset({"clear", "get", "items", "keys", "pop", "popitem", "setdefault", "update", "values"})
"""Members of mapping models, except for fields."""

MODEL_IMPORTS: Mapping[str, frozenset[str]] = {
    "datetime": frozenset({"dt_date", "dt_datetime", "dt_time"}),
    "pydantic": frozenset({"AnyUrl", "Field"}),
    "stubwright_runtime.generated": frozenset({"Map", "Model", "Nullable", "OpenModel", "Root"}),
    "typing": frozenset({"Annotated", "Any", "Final", "Literal", "Optional", "TypeAlias", "Union", "cast"}),
    "uuid": frozenset({"UUID"}),
}
"""Names that model modules can import, keyed by module."""

MODEL_NAMES = frozenset[str]().union(*MODEL_IMPORTS.values())
"""All names in `MODEL_IMPORTS`, which model classes cannot have."""

PAGE_NAMES = frozenset(
    {"Ask", "Binding", "BlobResourceContents", "CallHandles", "Completion", "ContentBlock", "HandleT", "Handles"}
    | {
        "Mapping",
        "NameT",
        "Never",
        "PerCall",
        "PrimitivesBinding",
        "PromptMessage",
        "Protocol",
        "Sequence",
        "TextResourceContents",
    }
)
"""Names that modules using models import, such as the client's; a model with such a name would hide the import.

Names that packages export are reserved anyway.
"""

PRINTER_NAMES = frozenset({"BaseModel"})
"""Classes that datamodel-code-generator would rename."""

FORMAT_NAMES = MODEL_IMPORTS["datetime"] | MODEL_IMPORTS["uuid"] | {"AnyUrl", "bytes"}
"""Names in annotations for formatted strings."""

MODEL_PACKAGES = frozenset({"handles", "prompts", "resources", "shared"})
"""Modules and folders of `models/`, which a tool's module must not shadow."""

# Names in generated annotations, in pydantic's `BaseModel` and in its metaclass, except `model_…`.
_FIELD_NAMES = (
    ANNOTATION_NAMES
    | {"Annotated", "Any", "Field", "Literal", "Nullable", "self"}
    | {
        "construct",
        "copy",
        "dict",
        "from_orm",
        "json",
        "mro",
        "parse_file",
        "parse_obj",
        "parse_raw",
        "register",
        "schema",
        "schema_json",
        "update_forward_refs",
        "validate",
    }
)


_HANDLE_NAMES = frozenset({"Any", "Handle", "Handles", "Literal", "overload", "property"})
"""Names in handle classes, which attributes must not use."""


@dataclass(frozen=True, slots=True)
class Names:
    """A tool's Python names: the method, the prefix of the classes, and the module below `models/`."""

    method: Name
    stem: Name
    module: Name


def is_importable(name: str) -> bool:
    """Return whether a name can be imported in Python."""
    return name.isidentifier() and not keyword.iskeyword(name)


def _module(name: str) -> Name:
    """Return a module or folder name, with `_` appended if Windows reserves the name."""
    return Name(f"{name}_" if paths.is_device(name) else name)


def split_words(name: str) -> tuple[str, ...]:
    """Split a wire name into its words.

    A word ends at every character that is not a letter or digit, between a lower-case letter and a capital, and before
    the last capital of an acronym followed by a word: `getHTTPResponse` gives `get`, `HTTP`, `Response`.
    """
    plain = unicodedata.normalize("NFKC", name)
    if not plain.isascii():  # regular expressions treat numerals in some scripts as letters, but Python does not
        plain = "".join(char if _is_part(char) else "_" for char in plain)
    return tuple(part for chunk in _NO_WORD.split(plain) for part in _STEP.split(chunk) if part)


def name_method(name: str) -> Name:
    """Return a tool's method name: its words in lower case, joined by `_`.

    `tool_` is prepended to a name without words or with a leading digit, and `_` is appended to a keyword or a reserved
    name.
    """
    joined = _identifier(_lower("_".join(split_words(name))))
    if not joined.isidentifier() and not keyword.iskeyword(joined):
        joined = f"tool_{joined}".rstrip("_")
    reserved = CLIENT_NAMES | ANNOTATION_NAMES | DECORATOR_NAMES | HANDLER_NAMES
    return Name(f"{joined}_" if keyword.iskeyword(joined) or joined in reserved else joined)


def to_pascal(snake: str) -> Name:
    """Return a method name in PascalCase: `get_http_response` gives `GetHttpResponse`."""
    name = _pascal(snake)
    return Name(name if name.isidentifier() else f"_{name}")  # a `pythonName` such as `_1`, which is rejected later


def _pascal(snake: str) -> str:
    return "".join(_strip_marks(part[:1].upper()) + part[1:] for part in snake.split("_"))


def name_tool(name: str, python_name: str | None = None) -> Names:
    """Return a tool's Python names. `python_name` is the manifest's `pythonName`."""
    method_name = Name(python_name) if python_name else name_method(name)
    return Names(
        method=method_name,
        stem=to_pascal(method_name),
        module=method_name + "_" if method_name in MODEL_PACKAGES else _module(method_name),
    )


def name_primitive(kind: str, name: str, python_name: str | None = None) -> Names:
    """Return the Python names of a `prompt`, resource or resource template.

    The method is `prompt_` or `read_` followed by the name's words. `python_name` is the manifest's `pythonName`.
    """
    verb = "prompt" if kind == "prompt" else "read"
    method_name = Name(
        python_name or f"{verb}_{_identifier(_lower('_'.join(split_words(name)))).strip('_')}".rstrip("_")
    )
    return Names(method=method_name, stem=to_pascal(method_name), module=_module(method_name))


def name_completion(names: Names) -> Name:
    """Return the name of the handler method that completes arguments of a prompt or resource template."""
    return Name(f"complete_{names.method}")


def name_input_class(names: Names) -> Name:
    """Return the name of the class for a tool's arguments."""
    return names.stem + "Input"


def name_output_class(names: Names) -> Name:
    """Return the name of the class for a tool's structured result."""
    return names.stem + "Output"


def name_arguments(names: Names, kind: str) -> Name:
    """Return the name of the class for a prompt's arguments or a resource template's variables."""
    return names.stem + ("Args" if kind == "prompt" else "Params")


TYPESCRIPT_MEMBERS = frozenset(
    {
        *("close", "pages", "raw", "then", "toJSON"),
        *("constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString"),
        *("toString", "valueOf"),
    }
)
"""Members of a TypeScript client besides its tools, and members of every object."""

TYPESCRIPT_TYPES = frozenset({"Promise", "Record", "Required"})
"""TypeScript's built-in types; a generated type with the same name would shadow them."""


def name_member(names: Names) -> Name:
    """Return the name of the TypeScript client's method: `get_weather` gives `getWeather`."""
    name = names.stem[:1].lower() + names.stem[1:]
    return Name(f"{name}_" if name in TYPESCRIPT_MEMBERS else name)


def name_completing_member(names: Names) -> Name:
    """Return the name of the TypeScript client's method that completes arguments of a prompt or resource template."""
    return Name(f"complete{names.stem}")


def name_type(name: Name) -> Name:
    """Return the name of the TypeScript type that corresponds to a Python class."""
    return name + "_" if name in TYPESCRIPT_TYPES else name


def name_examples_module(package: Name) -> Name:
    """Return the name of the module, next to a package, that tests the package's examples."""
    return Name(f"test_{package}")


def name_handwritten_module(server: str) -> Name:
    """Return the name of the module that `new` creates for a server's handlers: `weather-mcp` gives
    `weather_server`."""
    return Name("_".join([*(word.lower() for word in split_server_words(server)), "server"]))


def name_handwritten_class(stem: Name) -> Name:
    """Return the name of the class that `new` creates for a server's handlers. `stem` comes from `name_server_stem`."""
    return stem + "Server" if keyword.iskeyword(stem) or stem.startswith("Test") else stem  # pytest collects `Test…`


def name_question(name: str) -> str:
    """Return a valid method name for a question with a name that is not a valid method name."""
    return f"{name.strip('_').lower() or 'ask'}{'' if name.startswith('_') else '_'}"


def name_folder(kind: str) -> Name:
    """Return the name of the folder below `models` for prompt or resource models."""
    return Name("prompts" if kind == "prompt" else "resources")


def name_model_module(names: Names, kind: str) -> Name:
    """Return the name of the module below `models` for a prompt's or resource's models."""
    return Name(f"{name_folder(kind)}.{names.module}")


def answer(names: Names, question: str) -> Name:
    """Return the name of the class for answers to `question`, which the primitive with `names` asks."""
    return names.stem + to_pascal(name_method(question)) + "Answer"


def ask_class(names: Names) -> Name:
    """Return the name of the class with a method for each question that a primitive asks."""
    return names.stem + "Ask"


def name_context_class(names: Names) -> Name:
    """Return the name of the class of `ctx` in handlers that ask questions. Other handlers use `CONTEXT`."""
    return names.stem + CONTEXT


def name_handlers_class(stem: Name) -> Name:
    """Return the name of the interface for a server's handlers. `stem` comes from `name_server_stem`."""
    return stem + "Handlers"


def name_client_class(stem: Name) -> Name:
    """Return the name of a server's client class. `stem` comes from `name_server_stem`."""
    return stem + "Client"


def name_toolset_client(stem: Name, toolset: str) -> Name:
    """Return the name of a toolset's client class."""
    return stem + name_toolset_stem(toolset) + "Client"


def name_toolset_stem(toolset: str) -> Name:
    """Return the prefix of a toolset's classes: `read-only` gives `ReadOnly`."""
    return to_pascal(toolset.replace("-", "_"))


def name_shared(name: str) -> Names:
    """Return the Python names of a shared schema, for its class and module."""
    snake = Name(name_method(name).rstrip("_"))
    return Names(
        method=snake, stem=to_pascal(snake), module=snake + "_" if keyword.iskeyword(snake) else _module(snake)
    )


def name_shared_class(names: Names) -> Name:
    """Return a shared schema's class name, with `Model` appended if a generated module needs the name itself."""
    return names.stem + "Model" if names.stem in MODEL_NAMES | PAGE_NAMES | PRINTER_NAMES else names.stem


def handle_id(kind: str) -> Name:
    """Return the name of the ID type for a kind of handle: `basket` becomes `BasketId`."""
    return to_pascal(name_method(kind).rstrip("_")) + "Id"


def handle_attribute(kind: str) -> Name:
    """Return the name of the attribute of `ctx.handles` for one kind of handle."""
    return Name(f"{kind}_" if keyword.iskeyword(kind) or kind in _HANDLE_NAMES else kind)


def name_own_handles_class(names: Names) -> Name:
    """Return the name of the class for `ctx.handles` in a tool's handler."""
    name = names.stem + "Handles"
    return names.stem + "ToolHandles" if name in PAGE_NAMES else name


def name_circle(first: str) -> Name:
    """Return the name of the module for a reference cycle of shared schemas. `first` is the cycle's first name."""
    return Name(f"_{name_shared(first).module}_circle")


def name_values(names: Names) -> Name:
    """Return the name of the tuple of a shared enumeration's values, such as `STATUS_VALUES`."""
    return Name(f"{names.method.upper()}_VALUES")


def split_server_words(server: str) -> tuple[str, ...]:
    """Return the distinctive words of a server's name.

    `mcp` at the start or end, and `server` next to it, are dropped unless no word would remain: `airtable-mcp-server`
    and `mcp-server-airtable` give `airtable`, but `weather-server`, `mcp` and `mcp-server` stay unchanged. The dropped
    words would be redundant, because package names end in `mcp` and client classes in `Client`:
    `airtable_mcp_server_mcp`, `AirtableMcpServerClient`.

    Two servers can therefore have the same package name, such as `airtable` and `airtable-mcp`. `generate` rejects the
    second one, which needs `python.package`. If a name depended on the project's other manifests, adding a manifest
    would rename a package and break all imports.
    """
    parts = split_words(server)
    lower = tuple(part.lower() for part in parts)
    start, end = 0, len(parts)
    if lower[:1] == ("mcp",):
        start = 2 if lower[1:2] == ("server",) else 1
    if lower[-2:] in (("mcp", "server"), ("server", "mcp")):
        end -= 2
    elif lower[-1:] == ("mcp",):
        end -= 1
    return parts[start:end] or parts


def name_package(server: str) -> Name:
    """Return the name of the import package for a server: `weather` and `weather-mcp` give `weather_mcp`."""
    parts = [_lower(part) for part in split_server_words(server)]
    joined = "_".join(parts if parts[-1:] == ["mcp"] else [*parts, "mcp"])
    return Name(joined if joined.isidentifier() and joined != "mcp" else f"server_{joined}")


def name_server_stem(server: str) -> Name:
    """Return the prefix of a server's own classes: `weather-mcp` gives `Weather`, as in `WeatherHandlers`."""
    stem = _pascal(_lower("_".join(split_server_words(server))))
    return Name(stem if stem.isidentifier() else f"Server{stem}")


def name_nested(stem: Name, name: str) -> Name:
    """Return the name of the class for a schema in the class `stem`, at the property or other location `name`."""
    return stem + _pascal(_lower("_".join(split_words(name))) or "field")


@dataclass(frozen=True, slots=True)
class Step:
    """A step from a schema to a subschema.

    `name` is a property name, the position of an item with its own schema, or a hint for a branch.
    """

    kind: Literal["property", "item", "value", "branch"]
    name: str = ""


def list_nested_names(stem: Name, root: Name, definition: str | None, steps: Iterable[Step]) -> tuple[Name, ...]:
    """Return the possible class names for a nested schema, shortest first.

    Args:
        stem: The class prefix of the module.
        root: The class that contains the nested schema.
        definition: The name in `$defs` of the definition that contains, or is, the nested schema.
        steps: The path from the definition, or from the root, to the nested schema.
    """
    starts = [root] if definition is None else [name_nested(stem, definition), name_nested(root, definition)]
    steps = tuple(steps)
    rungs = [_apply_steps(start, steps, kinds) for kinds in _SPELLINGS for start in starts]
    if rungs[-1] == root:  # the name of the root class itself
        rungs.append(name_nested(root, "object"))
    return tuple(dict.fromkeys(rungs))


_SPELLINGS: tuple[frozenset[str], ...] = (
    frozenset({"property"}),
    frozenset({"property", "item", "value"}),
    frozenset({"property", "branch"}),
    frozenset({"property", "item", "value", "branch"}),
)
"""The kinds of steps that a name includes, shortest name first."""


def _apply_steps(start: Name, steps: Iterable[Step], kinds: frozenset[str]) -> Name:
    name = start
    for step in steps:
        if step.kind in kinds and (step.name or step.kind in ("item", "value", "property")):
            name = name_nested(name, step.name if step.kind in ("property", "branch") else step.kind + step.name)
    return name


def name_digested_class(name: Name, what: object) -> Name:
    """Append a digest of `what`, which the class represents, to a colliding class name."""
    return name + _digest(repr(what)).upper()


def name_digested_method(name: str, wire: str) -> str:
    """Append a digest of the wire name to a colliding method name."""
    readable = re.sub("[^A-Za-z0-9_]", "", name)[:LONGEST_METHOD].rstrip("_") or "tool"
    return f"{readable}_{_digest(wire)}"


LONGEST_METHOD = 60
"""The maximum length of a method name that is derived from a URI, or that a digest is appended to."""


def find_free(name: Name, taken: Container[str]) -> Name:
    """Append as many `_` to a name as necessary to make it differ from all `taken` names."""
    while name in taken:
        name = name + "_"
    return name


def _digest(text: str) -> str:
    # A JSON name can contain a lone surrogate, which UTF-8 cannot encode.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:6]


def _lower(text: str) -> str:
    return _strip_marks(text.lower())


def _strip_marks(text: str) -> str:
    """Return the text without combining marks, which words cannot contain. Changing a letter's case can add a mark."""
    return text if text.isascii() else "".join(char for char in text if not unicodedata.category(char).startswith("M"))


def name_field(name: str) -> Name:
    """Return a property's attribute name, which depends only on the property's name.

    An identifier stays unchanged. Otherwise each run of invalid characters becomes one `_`, leading underscores move to
    the end, `field_` is prepended to a leading digit, and `_` is appended to a name that Python, pydantic's `BaseModel`
    or an annotation needs. If no characters remain, the attribute is `field`.
    """
    return _fix(name, _keep_core(name))


def name_fields(names: Iterable[str]) -> Mapping[str, Name]:
    """Return the attribute names of a class, keyed by property.

    If properties collide, a property that is already a valid attribute keeps its name. The invalid characters in the
    others are spelled out as Unicode names (`StartTime<` gives `StartTime_less_than_sign`); if that is not enough, a
    digest of the wire name is appended. The order of `names` does not matter.
    """
    wires = list(names)
    names = {wire: name_field(wire) for wire in wires}
    for remake in (_spell_symbols, _append_digest):
        meetings = Counter(names.values())
        crowded = [wire for wire in wires if meetings[names[wire]] > 1 and names[wire] != wire]
        names |= {wire: remake(wire) for wire in crowded}
    return names


def _fix(name: str, fallback: str) -> Name:
    """Make an unreserved attribute name from the valid characters of `name`, or from `fallback` if none is valid."""
    core = name.lstrip("_")
    text = fallback + "_" * (len(name) - len(core)) if fallback else "field"
    if not text.isidentifier():
        text = f"field_{text}"
    if keyword.iskeyword(text) or text in _FIELD_NAMES or text.startswith("model_"):
        text += "_"
    return Name(text)


def _keep_core(name: str) -> str:
    core = name.lstrip("_")
    return core if core.isidentifier() and unicodedata.normalize("NFKC", core) == core else _identifier(core).strip("_")


def _identifier(text: str) -> str:
    """Return `text` as part of an identifier, with one `_` for each run of invalid characters."""
    if _PLAIN.fullmatch(text):
        return text
    plain = unicodedata.normalize("NFKC", text)
    return _GAPS.sub("_", "".join(char if _is_part(char) else "\0" for char in plain))


def _is_part(char: str) -> bool:
    # Python normalizes identifiers to NFKC, which would rename other identifiers.
    return f"a{char}".isidentifier() and unicodedata.normalize("NFKC", char) == char


def _spell_symbols(name: str) -> Name:
    spelled = (
        char if _is_part(char) else f"_{unicodedata.name(char, f'u{ord(char):x}').lower()}_"
        for char in name.lstrip("_")
    )
    return _fix(name, re.sub("_+", "_", _identifier("".join(spelled))).strip("_"))


def _append_digest(name: str) -> Name:
    return Name(f"{name_field(name).rstrip('_')}_{_digest(name)}")
