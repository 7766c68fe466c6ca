"""Describes a package's Python code before it is generated: classes, fields, methods and parameters.

Pages are rendered from this description, and other modules read it instead of parsing generated code.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from stubwright import ir, naming
from stubwright.codegen.source.docstrings import (
    describe_arguments,
    describe_deprecation,
    describe_parameter,
    describe_primitive,
    describe_tool,
)
from stubwright.codegen.source.imports import DATES
from stubwright.codegen.source.literals import format_literal
from stubwright.codegen.source.qualified_names import qualify_names
from stubwright.pycode import Code, Name, fill, join, list_item
from stubwright_runtime.mcp import vocabulary

if TYPE_CHECKING:
    from stubwright.diagnostics import Place

ClassRole: TypeAlias = Literal["input", "output", "answer", "arguments", "variables", "shared"]
"""The kind of value that a class's instances represent, wholly or in part.

The kinds are a tool's arguments or result, the answer to a question, a prompt's arguments, a resource template's
variables, and values of a shared schema.
"""

MethodRole: TypeAlias = Literal["tool", "resource", "prompt", "completion"]
"""A method's action: call a tool, read a resource or a template, get a prompt, or complete an argument."""


@dataclass(frozen=True, slots=True)
class Type:
    """A Python type.

    Attributes:
        text: The source.
        choices: The alternatives, with each `Literal` value separate; only the type itself if it is not a union.
        names: The names in the type, except builtins.
    """

    text: Code
    choices: tuple[Code, ...]
    names: frozenset[Name] = frozenset()


def make_plain(name: Name) -> Type:
    """Return the type that consists of only a class name."""
    return Type(name, (name,), frozenset({name}))


def make_optional(kind: Type) -> Type:
    """Return the union of a type and `None`."""
    if {"Any", "None"} & {*kind.choices}:
        return kind
    return Type(fill("{} | None", kind.text), (*kind.choices, fill("None")), kind.names)


ANY = Type(fill("Any"), (fill("Any"),), frozenset({Name("Any")}))
STR = Type(fill("str"), (fill("str"),))
_TEXTS = Type(fill("Sequence[str]"), (fill("Sequence[str]"),), frozenset({Name("Sequence")}))
_GIVEN = Type(fill("Mapping[str, str]"), (fill("Mapping[str, str]"),), frozenset({Name("Mapping")}))


NOT_MODELS: Final = frozenset(
    map(
        Name,
        (
            *("Any", "AnyUrl", "BlobResourceContents", "Completion", "Literal", "Mapping", "Omit", "PromptMessage"),
            *("Sequence", "TextResourceContents", "UUID"),
            *DATES,
        ),
    )
)
"""Names in types that are not models."""


def _qualify(kind: Type) -> Type:
    models = kind.names - NOT_MODELS
    return replace(kind, text=qualify_names(kind.text, Name("_models"), models)) if models else kind


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a model class.

    Attributes:
        wire: The property's name.
        name: The attribute's name.
        default: The source after `=`.
    """

    wire: str
    name: Name
    type: Type
    default: Code | None
    doc: str


@dataclass(frozen=True, slots=True)
class Class:
    """A model class.

    Attributes:
        roles: What the class represents; several if identical schemas share the class.
        is_root: True if an instance represents the whole value, not part of it.
        fields: The fields that the class declares itself.
        base: The base class or, with `is_alias`, the class that this class is another name for.
        inherited: The base class's fields, if known.
        values: The type of a mapping's values under undeclared keys.
    """

    name: Name
    roles: frozenset[ClassRole]
    is_root: bool
    fields: tuple[Field, ...]
    place: Place
    base: Name | None = None
    is_alias: bool = False
    inherited: tuple[Field, ...] = ()
    values: Type | None = None

    @property
    def all_fields(self) -> tuple[Field, ...]:
        """The inherited fields, then the class's own."""
        return (*self.inherited, *self.fields)


@dataclass(frozen=True, slots=True)
class NamedType:
    """The type of a shared enumeration or scalar.

    Attributes:
        values: The name of the tuple of an enumeration's values.
        type: The type's definition.
    """

    name: Name
    values: Name | None
    type: Type
    place: Place

    @property
    def names(self) -> tuple[Name, ...]:
        """The names that the type's module defines."""
        return (self.name,) if self.values is None else (self.name, self.values)


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a tool, prompt or template, as a parameter of the client method.

    Attributes:
        type: The type; includes `None` if `null` can be sent.
        default: The schema's default as Python source, if any. The server applies it.
    """

    wire: str
    name: Name
    type: Type
    required: bool
    nullable: bool
    doc: str
    default: Code | None


@dataclass(frozen=True, slots=True)
class Parameter:
    """A method's parameter.

    Attributes:
        given: The type of the values.
        default: The source after `=`.
        can_be_omitted: True if requests can omit the argument.
        wire: The argument's name in requests; empty if the parameter is not sent as an argument.
    """

    name: Name
    given: Type
    default: Code | None = None
    can_be_omitted: bool = False
    wire: str = ""

    @property
    def type(self) -> Type:
        """The type in a signature, including `Omit` if requests can omit it."""
        if not self.can_be_omitted:
            return self.given
        left_out = Name("Omit")
        choices = (*self.given.choices, left_out)
        return Type(fill("{} | {}", self.given.text, left_out), choices, self.given.names | {left_out})

    @property
    def source(self) -> Code:
        """The parameter's source in a signature."""
        if self.default is None:
            return fill("{}: {}", self.name, self.type.text)
        return fill("{}: {} = {}", self.name, self.type.text, self.default)


@dataclass(frozen=True, slots=True)
class HandlerMethod:
    """A method of the handler interface.

    Attributes:
        key: The wire name or URI of the tool, resource or prompt.
        names: The primitive's Python names.
        parameters: The arguments, if any, then the context.
        wrapper: The generic type around `result`.
    """

    role: MethodRole
    key: str
    names: naming.Names
    name: Name
    parameters: tuple[Parameter, ...]
    wrapper: Name
    result: Type
    doc: str
    place: Place
    is_optional: bool = False

    @property
    def context(self) -> Parameter:
        """The parameter that receives the context."""
        return self.parameters[-1]

    @property
    def signature(self) -> Code:
        """The parameters' source, including `self`."""
        return join(", ", [fill("self"), *(parameter.source for parameter in self.parameters)])

    @property
    def returns(self) -> Code:
        """The return type: `result` in its wrapper."""
        return fill("{}[{}]", self.wrapper, self.result.text)


@dataclass(frozen=True, slots=True)
class ClientMethod:
    """A client method, which calls the base class's method `call` with `arguments`.

    Attributes:
        by_name: True if the parameters are keyword-only.
        arguments: Expressions. A tuple contains dictionary entries.
        gives_model: True if the method returns a model.
        gives_content: True if it returns a result's content.
        gives_pages: True if it returns one page of several.
        page_items: The attribute for a page's items, unless it is the `items` of an imported API, and the decorator's
            type.
        page_names: The names in the decorator's type.
        gives_response: True if the method is in the responses class and returns a response.
        gives_task: True if the method is in the tasks class and returns a task.
    """

    role: MethodRole
    name: Name
    parameters: tuple[Parameter, ...]
    by_name: bool
    returns: Type
    call: Name
    arguments: tuple[Code | tuple[Code, ...], ...]
    deprecated: str | None
    doc: str
    place: Place
    gives_model: bool = False
    gives_content: bool = False
    gives_pages: bool = False
    page_items: tuple[str, str] | None = None
    page_names: frozenset[Name] = frozenset()
    gives_response: bool = False
    gives_task: bool = False

    @property
    def annotation(self) -> Code:
        """The return type in the primitive's own module, which does not import models for it."""
        given = self.returns.text
        if self.gives_model or self.gives_content:
            given = fill("{}.{}", Name("_models" if self.gives_model else "_runtime"), given)
        if self.gives_task:
            return fill("_runtime.ToolTask[{}]", given)
        return fill("_runtime.CallResponse[{}]", given) if self.gives_response else given

    @property
    def signature(self) -> tuple[Code, ...]:
        """The parameters' source, including `self`."""
        named = (fill("*"),) if self.by_name and self.parameters else ()
        return (fill("self"), *named, *(parameter.source for parameter in self.parameters))

    @property
    def source(self) -> tuple[Code, ...]:
        """The parameters in the client module, where type hints resolve at run time: models are `_models.Name`."""
        named = (fill("*"),) if self.by_name and self.parameters else ()
        parameters = [replace(each, given=_qualify(each.given)).source for each in self.parameters]
        return (fill("self"), *named, *parameters)

    @property
    def names(self) -> frozenset[Name]:
        """The names in the method's signature, except builtins, defaults and models."""
        returned = frozenset[Name]() if self.gives_model or self.gives_content else self.returns.names
        taken = frozenset[Name]().union(*(parameter.type.names for parameter in self.parameters))
        return returned | self.page_names | (taken & NOT_MODELS)


@dataclass(frozen=True, slots=True)
class Surface:
    """Everything that a package's users can name: handler methods, client methods, classes and named types."""

    handlers: tuple[HandlerMethod, ...]
    client: tuple[ClientMethod, ...]
    classes: tuple[Class, ...]
    named_types: tuple[NamedType, ...] = ()


def with_inherited(classes: Sequence[Class]) -> Iterator[Class]:
    """Add to each class the fields that it inherits from another class."""
    by_name = {each.name: each for each in classes}

    def describe_inherited(cls: Class) -> tuple[Field, ...]:
        base = by_name.get(cls.base) if cls.base is not None else None
        return (*describe_inherited(base), *base.fields) if base is not None else ()

    return (replace(each, inherited=describe_inherited(each)) for each in classes)


def describe(
    manifest: ir.Manifest,
    parameters: Mapping[str, tuple[Sequence[Argument], Type | None]],
    classes: Iterable[Class],
    named_types: Iterable[NamedType] = (),
) -> Surface:
    """Describe the surface of a manifest's package.

    Args:
        manifest: The lowered manifest.
        parameters: The parameters of each client method and the type of its additional arguments, keyed by wire name.
        classes: The manifest's model classes.
        named_types: The types of the manifest's shared enumerations and scalars.
    """
    classes = tuple(classes)
    calls = [describe_tool_method(tool, *parameters[tool.name], classes) for tool in manifest.tools]
    calls += [method for primitive in _primitives(manifest) for method in describe_primitive_methods(primitive)]
    return Surface(
        handlers=list_handler_methods(manifest) if "server" in manifest.emit else (),
        client=tuple(calls) if "client" in manifest.emit else (),
        classes=classes,
        named_types=tuple(named_types),
    )


def _primitives(manifest: ir.Manifest) -> tuple[ir.Primitive, ...]:
    return (*manifest.resources, *manifest.templates, *manifest.prompts)


# --- Handlers ---


def list_handler_methods(manifest: ir.Manifest) -> tuple[HandlerMethod, ...]:
    """Return the methods that handlers must implement: tools first, then other primitives, then completions."""
    primitives = _primitives(manifest)
    return (
        *(_tool_handler(tool) for tool in manifest.tools),
        *(_primitive_handler(primitive) for primitive in primitives if primitive.handled),
        *(_completion_handler(primitive) for primitive in primitives if primitive.completes),
    )


def _tool_handler(tool: ir.Tool) -> HandlerMethod:
    doc = describe_tool(tool)
    if tool.unbound:
        names = ", ".join(f"``{name}``" for name in tool.unbound)
        doc = f"{doc}\n\nNot bound here: {names}. The caller sets {'it' if len(tool.unbound) == 1 else 'them'}."
    if tool.paginate:
        doc = f"{doc}\n\n``ctx.page`` is the requested page. Return the start of the next one as ``nextCursor``."
    return HandlerMethod(
        role="tool",
        key=tool.name,
        names=tool.names,
        name=tool.names.method,
        parameters=(Parameter(Name("args"), _input(tool)), _context(tool)),
        wrapper=Name("Returns"),
        result=make_plain(Name("Content") if tool.output is None else naming.name_output_class(tool.names)),
        doc=doc,
        place=tool.place,
        is_optional=tool.call is not None,
    )


def _input(tool: ir.Tool) -> Type:
    """Return the type of a tool's arguments class.

    `choices` includes the shared classes that the class extends or aliases.
    """
    kind = make_plain(naming.name_input_class(tool.names))
    others = (naming.name_shared_class(naming.name_shared(name)) for name in tool.input.extended)
    return replace(kind, choices=(*kind.choices, *others))


def _primitive_handler(primitive: ir.Primitive) -> HandlerMethod:
    is_prompt = primitive.kind == "prompt"
    given = Parameter(Name("args"), make_plain(naming.name_arguments(primitive.names, primitive.kind)))
    return HandlerMethod(
        role="prompt" if is_prompt else "resource",
        key=primitive.key,
        names=primitive.names,
        name=primitive.names.method,
        parameters=(*([given] if primitive.arguments is not None else []), _context(primitive)),
        wrapper=Name("MaybeAwaitable"),
        result=make_plain(Name("Messages" if is_prompt else "ResourceContents")),
        doc=describe_primitive(primitive),
        place=primitive.place,
    )


def _completion_handler(primitive: ir.Primitive) -> HandlerMethod:
    return HandlerMethod(
        role="completion",
        key=primitive.key,
        names=primitive.names,
        name=naming.name_completion(primitive.names),
        parameters=(
            Parameter(Name("args"), make_plain(Name("Completing"))),
            Parameter(Name("ctx"), make_plain(naming.CONTEXT)),
        ),
        wrapper=Name("MaybeAwaitable"),
        result=_TEXTS,
        doc=f"Return completions for the arguments of the {primitive.kind} ``{primitive.key}``.",
        place=primitive.place,
    )


def _context(primitive: ir.Tool | ir.Primitive) -> Parameter:
    return Parameter(
        Name("ctx"), make_plain(naming.name_context_class(primitive.names) if primitive.has_context else naming.CONTEXT)
    )


# --- Client ---


def describe_tool_method(
    tool: ir.Tool, parameters: Sequence[Argument], extra: Type | None = None, classes: Iterable[Class] = ()
) -> ClientMethod:
    """Return the client method for a tool.

    Args:
        parameters: The parameters from the tool's models.
        extra: The type of additional arguments, or None if the schema forbids them.
        classes: The tool's model classes; others are ignored.
    """
    output = naming.name_output_class(tool.names) if tool.output is not None else None
    parameters = [parameter for parameter in parameters if parameter.wire not in tool.bound]
    if tool.paginate:
        parameters.append(_cursor(tool, {parameter.name for parameter in parameters}))
    sent = tuple(fill("{}: {}", format_literal(parameter.wire), parameter.name) for parameter in parameters)
    described = [(parameter.name, describe_parameter(parameter.doc, parameter.default)) for parameter in parameters]
    rest_name = naming.find_free(Name("extra"), {each.name for each in parameters})
    rest = Parameter(rest_name, make_optional(_make_mapping(extra)), fill("None")) if extra is not None else None
    if rest is not None:
        described.append((rest.name, _EXTRA))
    doc = describe_tool(tool)
    if tool.gives_pages:
        doc = f"{doc}\n\nReturns one page. ``{tool.names.method}.pages(…)`` yields the items of all pages."
    page = _page_items(tool, classes) if tool.paginate else None
    return ClientMethod(
        role="tool",
        name=tool.names.method,
        parameters=(
            *(_make_parameter(each.wire, each.name, each.type, required=each.required) for each in parameters),
            *([rest] if rest is not None else []),
        ),
        by_name=True,
        returns=make_plain(output or Name("ToolContent")),
        call=Name("_call" if output else "_call_content"),
        arguments=(
            format_literal(tool.name),
            sent,
            *([Name(f"_models.{output}")] if output else []),
            *([rest.name] if rest is not None else []),
        ),
        deprecated=describe_deprecation(tool.deprecated),
        doc=describe_arguments(doc, described),
        place=tool.place,
        gives_model=output is not None,
        gives_content=output is None,
        gives_pages=tool.gives_pages,
        page_items=None if page is None else (str(page[0]), f"_runtime.PagedBy[{page[1].text}]"),
        page_names=frozenset() if page is None else page[1].names,
    )


def _cursor(tool: ir.Tool, taken: Collection[Name]) -> Argument:
    """Return the client's argument for a page cursor, which handlers do not receive."""
    schema = tool.sent.wire["properties"][vocabulary.CURSOR]
    name = naming.find_free(Name(vocabulary.CURSOR), taken)
    return Argument(vocabulary.CURSOR, name, STR, False, False, schema["description"], None)


def _page_items(tool: ir.Tool, classes: Iterable[Class]) -> tuple[Name, Type]:
    output = next(each for each in classes if each.name == naming.name_output_class(tool.names))
    field = next(each for each in output.fields if each.wire == tool.paginate["items"])
    inner = next((item for choice in field.type.choices if (item := list_item(choice)) is not None), None)
    if inner is None:
        return field.name, ANY
    return field.name, replace(field.type, text=inner, choices=(inner,))


_EXTRA = "Additional arguments that the schema allows, by wire name."


def _make_mapping(values: Type) -> Type:
    text = fill("Mapping[str, {}]", values.text)
    return Type(text, (text,), values.names | {Name("Mapping")})


def describe_primitive_methods(primitive: ir.Primitive) -> tuple[ClientMethod, ...]:
    """Return the client methods that get a resource, template or prompt and complete its arguments."""
    own = _primitive_method(primitive)
    return (own, _completion_method(primitive)) if primitive.completed else (own,)


def _primitive_method(primitive: ir.Primitive) -> ClientMethod:
    arguments = sorted(primitive.arguments or (), key=lambda argument: not argument.required)
    names = naming.name_fields(argument.name for argument in arguments)
    is_prompt = primitive.kind == "prompt"
    sent = tuple(fill("{}: {}", format_literal(argument.name), names[argument.name]) for argument in arguments)
    described = [(names[argument.name], argument.description or "") for argument in arguments]
    return ClientMethod(
        role="prompt" if is_prompt else "resource",
        name=primitive.names.method,
        parameters=tuple(
            _make_parameter(each.name, names[each.name], _TEXTS if each.many else STR, required=each.required)
            for each in arguments
        ),
        by_name=True,
        returns=_list_of("PromptMessage") if is_prompt else _list_of("TextResourceContents", "BlobResourceContents"),
        call=Name("_prompt" if is_prompt else "_read" if primitive.arguments is None else "_read_from"),
        arguments=(format_literal(primitive.key), *([] if primitive.arguments is None else [sent])),
        deprecated=describe_deprecation(primitive.deprecated),
        doc=describe_arguments(describe_primitive(primitive), described),
        place=primitive.place,
    )


def _completion_method(primitive: ir.Primitive) -> ClientMethod:
    kind = format_literal("prompt" if primitive.kind == "prompt" else "template")
    called = f"the {primitive.kind} ``{primitive.key}``"
    return ClientMethod(
        role="completion",
        name=naming.name_completion(primitive.names),
        parameters=(
            Parameter(Name("argument"), _make_literal(primitive.completed)),
            Parameter(Name("value"), STR),
            Parameter(Name("given"), make_optional(_GIVEN), fill("None")),
        ),
        by_name=False,
        returns=make_plain(Name("Completion")),
        call=Name("_complete"),
        arguments=(kind, format_literal(primitive.key), Name("argument"), Name("value"), Name("given")),
        deprecated=None,
        doc=f"Complete an argument of {called}. `given` contains the others.",
        place=primitive.place,
    )


def _make_parameter(wire: str, name: Name, kind: Type, *, required: bool) -> Parameter:
    """Convert an argument to a client parameter. Requests can omit the parameter unless the argument is required."""
    return Parameter(name, kind, None if required else Name("OMIT"), not required, wire)


def _make_literal(values: Sequence[str]) -> Type:
    members = [format_literal(value) for value in values]
    choices = tuple(fill("Literal[{}]", member) for member in members)
    return Type(fill("Literal[{}]", join(", ", members)), choices, frozenset({Name("Literal")}))


def _list_of(*items: str) -> Type:
    names = tuple(map(Name, items))
    text = fill("list[{}]", join(" | ", names))
    return Type(text, (text,), frozenset(names))
