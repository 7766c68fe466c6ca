"""Model modules: the only caller of datamodel-code-generator.

Takes a tool or a shared schema and gives the source of its module of models, with what the rest of the package must
know of it. Types, references and the order of classes are the generator's; names, defaults and docstrings are ours, and
get into its text through our templates, as literals. What it writes is read, and never changed.
"""

from __future__ import annotations

import ast
import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from toolwright import ir, naming
from toolwright.diagnostics import Place
from toolwright.literals import docstring, literal
from toolwright.modelling.classes import RESERVED, Imported, Part, plan_classes, python
from toolwright.modelling.inspection import require_declarations
from toolwright.modelling.redaction import marks
from toolwright.modelling.shapes import Document
from toolwright.pycode import Code, Name, checked, code, join, trusted
from toolwright.render import templates
from toolwright.runtime.texts import steps
from toolwright.schemas import dialects

if TYPE_CHECKING:
    from toolwright.ir import Json
    from toolwright.modelling.classes import ClassPlan, Row
    from toolwright.modelling.redaction import Way

_TYPING = frozenset({"Annotated", "Any", "Literal", "Optional", "Union", "cast"})
_RUNTIME = frozenset({"Model", "Nullable", "Root"})


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument of a tool, as a parameter of the client binding.

    `annotation` is the type of a value that is given: `None` is in it where `null` can be sent. `default` is the
    schema's default as Python source, where there is one.
    """

    wire: str
    name: Name
    annotation: Code
    required: bool
    nullable: bool
    doc: str
    default: Code | None


@dataclass(frozen=True, slots=True)
class ModelModule:
    """A module of models.

    `source` is its text, without a header and not formatted. `input` and `output` are the classes of a tool's arguments
    and structured result; a shared schema has `input` alone. `classes` are all that it defines. `parameters` are those
    of the client binding: the required ones first, else in the schema's order; and `names` are all names but builtins
    in their annotations: of `typing`, and of classes that the package's `models` exports.
    """

    source: Code
    input: Name
    output: Name | None
    classes: tuple[Name, ...]
    parameters: tuple[Parameter, ...]
    names: tuple[Name, ...]


def load() -> None:
    """Load the generator and have it write a class, so that the first tool takes it no longer than the others."""
    properties = {"type": "object", "properties": {"any": {"type": "string"}}}
    schema = ir.Schema(properties, dialects.DRAFT_2020_12.uri, Place(""))
    shared_modules([ir.SharedSchema("any", naming.shared("any"), schema)])


def homes(shared: Iterable[ir.SharedSchema]) -> dict[str, Imported]:
    """The class of each shared schema that has one, by its name under `schemas`, and its module below `models.shared`.

    One that is not an object with properties has none.
    """
    found: dict[str, ir.SharedSchema] = {}
    aliases: dict[str, list[str]] = defaultdict(list)
    for schema in shared:
        document = Document("shared", schema.schema)
        thing = document.only_object(document.root)
        if thing is not None:
            found[schema.name] = schema
            if (other := document.shared(thing)) is not None:
                aliases[other].append(schema.name)
    return {
        name: Imported(_shared_class(schema), Name(schema.names.module), tuple(aliases[name]))
        for name, schema in found.items()
    }


def modules(tools: Sequence[ir.Tool], shared: Mapping[str, Imported] | None = None) -> list[ModelModule]:
    """The models of each tool: `{Stem}Input`, `{Stem}Output` if it has an output schema, and the classes below them.

    A module depends on its own tool alone, whatever the others are; together they are made faster.

    Args:
        tools: The tools.
        shared: The `homes` of the manifest's shared schemas, from which their classes are imported.
    """
    imported = _in("shared.", shared or {})
    return _modules([_draft(tool, imported) for tool in tools])


def _in(folder: str, shared: Mapping[str, Imported]) -> dict[str, Imported]:
    """Where classes are imported from, for modules beside a folder, or in it."""
    return {name: replace(each, module=Name(f".{folder}{each.module}")) for name, each in shared.items()}


def _draft(tool: ir.Tool, imported: Mapping[str, Imported]) -> _Draft:
    stem = tool.names.stem
    arguments = Document("input", tool.input, merged=True)
    parts = [Part(arguments, stem + "Input", f"Arguments of the tool ``{tool.name}``.", _ways(tool))]
    if tool.output is not None:
        output = Document("output", tool.output, merged=_is_of_objects(tool.output))
        parts.append(Part(output, stem + "Output", f"Result of the tool ``{tool.name}``."))
    parts += _answers(tool.questions)
    plans, used = plan_classes(stem, parts, imported)
    return _Draft(f"Models of the tool ``{tool.name}``.", tuple(parts), plans, used, Name(".._runtime.model"))


def _ways(tool: ir.Tool) -> tuple[Way, ...]:
    """The ways to the arguments that its policy redacts."""
    return tuple(tuple(steps(pointer)) for pointer in tool.policy.get("redact") or ())


def _is_of_objects(schema: ir.Schema) -> bool:
    """Whether a schema says of its root that it is an object; what a reference hides does not count."""
    dialect = dialects.of(schema.wire) or dialects.DRAFT_2020_12
    hidden = "$ref" in schema.wire and dialect.reference_hides_siblings
    return schema.wire.get("type") == "object" and not hidden


def offer_modules(offers: Sequence[ir.Offer]) -> list[ModelModule]:
    """The models of prompts and resource templates: of their arguments, and of the answers to their questions.

    Args:
        offers: Those that the handlers serve, so that there is somebody to use the models.
    """
    return _modules([_offer_draft(offer) for offer in offers])


def _offer_draft(offer: ir.Offer) -> _Draft:
    of = f"the {offer.kind} ``{offer.key}``"
    schema = ir.Schema(_arguments(offer.arguments or ()), dialects.DRAFT_2020_12.uri, offer.place)
    words = "Arguments" if offer.kind == "prompt" else "Variables"
    parts = [
        Part(Document("input", schema, merged=True), naming.arguments(offer.names, offer.kind), f"{words} of {of}.")
    ]
    parts += _answers(offer.questions)
    plans, used = plan_classes(offer.names.stem, parts, {})
    return _Draft(f"Models of {of}.", tuple(parts), plans, used, Name("..._runtime.model"))


def _arguments(arguments: Sequence[ir.Argument]) -> Json:
    properties: dict[str, Json] = {}
    for argument in arguments:
        kind: Json = {"type": "array", "items": {"type": "string"}} if argument.many else {"type": "string"}
        properties[argument.name] = {**kind, "description": argument.description} if argument.description else kind
    required = [argument.name for argument in arguments if argument.required]
    return {"type": "object", "properties": properties, "required": required}


def _answers(questions: Sequence[ir.Question]) -> Iterator[Part]:
    """The answers to those questions that are asked with a form."""
    for question in questions:
        if question.schema is not None:
            document = Document(f"question {question.name}", question.schema, merged=True)
            yield Part(document, question.answer, f"An answer to ``{question.name}``: {question.message}")


@dataclass(frozen=True, slots=True)
class SharedModules:
    """The modules of shared schemas: `of` has that of each that has a class, by its name under `schemas`.

    Those that lead to each other have their classes in one module, since modules cannot import each other; their own
    modules take them from there. `circles` are these modules by their names below `models.shared`.
    """

    of: Mapping[str, ModelModule] = field(default_factory=dict)
    circles: Mapping[Name, ModelModule] = field(default_factory=dict)


def shared_modules(shared: Sequence[ir.SharedSchema], found: Mapping[str, Imported] | None = None) -> SharedModules:
    """The models of shared schemas.

    Args:
        shared: All of the manifest's shared schemas.
        found: Their `homes`, where they are known.
    """
    imported = _in("", homes(shared) if found is None else found)
    groups: dict[tuple[str, bool], list[ir.SharedSchema]] = defaultdict(list)
    for schema in shared:
        if schema.name in imported:
            groups[schema.circle or schema.name, schema.circle is None].append(schema)
    drafts = [_shared_draft(members, imported) for members in groups.values()]
    of: dict[str, ModelModule] = {}
    circles: dict[Name, ModelModule] = {}
    for members, draft in zip(groups.values(), drafts, strict=True):
        (module,) = _modules([draft])
        if len(members) == 1:
            of[members[0].name] = module
            continue
        home = _circle_module(members)
        circles[home] = module
        of |= {schema.name: _taken_from(home, schema, draft.groups[_shared_class(schema)]) for schema in members}
    return SharedModules({schema.name: of[schema.name] for schema in shared if schema.name in of}, circles)


def _shared_draft(members: Sequence[ir.SharedSchema], imported: Mapping[str, Imported]) -> _Draft:
    """The module of a shared schema, or of several that lead to each other."""
    alone = len(members) == 1
    parts = tuple(
        Part(
            Document("shared" if alone else f"shared {schema.name}", schema.schema),
            _shared_class(schema),
            f"The shared schema ``{schema.name}``.",
            schema.redacted,
            schema.names.stem,
        )
        for schema in members
    )
    plans, used = plan_classes(members[0].names.stem, parts, imported)
    own = {plan.name for plan in plans}
    first = members[0].name
    doc = f"Models of the shared schema ``{first}``." if alone else "Models of shared schemas that lead to each other."
    others = tuple(each for each in used if each.name not in own)
    return _Draft(doc, parts, plans, others, Name("..._runtime.model"), circle=not alone)


def _circle_module(members: Iterable[ir.SharedSchema]) -> Name:
    """The module of schemas that lead to each other: it is called by the first of them in the alphabet's order."""
    first = min(members, key=lambda schema: schema.name)
    return Name(f"_{first.names.module}_circle")


def _taken_from(home: Name, schema: ir.SharedSchema, classes: tuple[Name, ...]) -> ModelModule:
    """The module of a shared schema whose classes are in the module `home`."""
    exports = join(", ", [code("{} as {}", name, name) for name in sorted(classes)])
    head = code(_HEAD, docstring(f"Models of the shared schema ``{schema.name}``."))
    source = join("\n", [head, code("from .{} import {}", home, exports)])
    return ModelModule(source, _shared_class(schema), None, classes, (), ())


def redacting(tools: Sequence[ir.Tool], shared: Sequence[ir.SharedSchema]) -> tuple[ir.SharedSchema, ...]:
    """The shared schemas with the ways to what the policies of all tools redact in them."""
    imported = homes(shared)
    schemas = {schema.name: schema.schema for schema in shared}
    found: dict[str, set[Way]] = defaultdict(set)
    waiting = [(Document("input", tool.input, merged=True), _ways(tool)) for tool in tools if _ways(tool)]
    while waiting:
        document, ways = waiting.pop()
        for name, way in marks(document, ways, imported).elsewhere:
            if way not in found[name]:
                found[name].add(way)
                waiting.append((Document("shared", schemas[name]), (way,)))
    return tuple(replace(schema, redacted=tuple(sorted(found[schema.name]))) for schema in shared)


def _shared_class(schema: ir.SharedSchema) -> Name:
    stem = schema.names.stem
    return stem + "Model" if stem in RESERVED else stem


@dataclass(frozen=True, slots=True)
class _Draft:
    """A module before its classes are written; `runtime` is the module of their bases.

    Where it is a `circle`, each part stands for itself, and the order of its classes is left to their parts.
    """

    doc: str
    parts: tuple[Part, ...]
    plans: tuple[ClassPlan, ...]
    used: tuple[Imported, ...]
    runtime: Name
    circle: bool = False

    @property
    def own(self) -> frozenset[str]:
        """The names of its classes."""
        return frozenset(plan.name for plan in self.plans)

    @property
    def groups(self) -> Mapping[Name, tuple[Name, ...]]:
        """The classes that stand together, by the first of them."""
        roots = {part.name for part in self.parts if self.circle}
        groups: list[list[Name]] = []
        for plan in self.plans:
            if not groups or plan.name in roots:
                groups.append([])
            groups[-1].append(plan.name)
        return {names[0]: tuple(names) for names in groups}

    @property
    def taken(self) -> frozenset[str]:
        """The names of the classes that it imports."""
        return frozenset(each.name for each in self.used)


@dataclass(slots=True)
class _Run:
    """Drafts that the generator writes at once, since no name means two things in them."""

    own: set[str] = field(default_factory=set)
    taken: set[str] = field(default_factory=set)
    indexes: list[int] = field(default_factory=list)

    def admits(self, draft: _Draft) -> bool:
        """Whether a draft's names mean nothing else here."""
        return draft.own.isdisjoint(self.own | self.taken) and draft.taken.isdisjoint(self.own)

    def add(self, index: int, draft: _Draft) -> None:
        """Take a draft in."""
        self.own |= draft.own
        self.taken |= draft.taken
        self.indexes.append(index)


def _modules(drafts: Sequence[_Draft]) -> list[ModelModule]:
    """Write several modules with as few runs of the generator as there are drafts that have names in common."""
    runs: list[_Run] = []
    for index, draft in enumerate(drafts):
        run = next((run for run in runs if run.admits(draft)), None)
        if run is None:
            runs.append(run := _Run())
        run.add(index, draft)
    made: dict[int, ModelModule] = {}
    for run in runs:
        text = _generate(
            [plan for index in run.indexes for plan in drafts[index].plans],
            [each for index in run.indexes for each in drafts[index].used],
        )
        written = {node.name: node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)}
        lines = text.splitlines()
        made |= {index: _module(drafts[index], written, lines) for index in run.indexes}
    return [made[index] for index in range(len(drafts))]


def _module(draft: _Draft, written: Mapping[str, ast.ClassDef], lines: Sequence[str]) -> ModelModule:
    own = {plan.name: written[plan.name] for plan in draft.plans}
    for node in own.values():
        require_declarations(node)
    order = _ordered(own, draft.groups.values())
    names = {name for node in own.values() for name in _names(node)}
    imports = _imports(
        {Name("typing"): names & _TYPING, Name("pydantic"): names & {"Field"}, draft.runtime: names & _RUNTIME},
        {each.module: each.name for each in draft.used},
    )
    classes = [trusted("\n".join(["", "", *lines[own[name].lineno - 1 : own[name].end_lineno]])) for name in order]
    root = draft.plans[0]
    parameters = tuple(sorted(_parameters(own[root.name], root.rows), key=lambda each: not each.required))
    return ModelModule(
        source=join("\n", [code(_HEAD, docstring(draft.doc)), *imports, *classes]),
        input=draft.parts[0].name,
        output=next((part.name for part in draft.parts if part.document.name == "output"), None),
        classes=tuple(plan.name for plan in draft.plans),
        parameters=parameters,
        names=tuple(
            Name(name)
            for name in sorted({name for each in parameters for name in _names(ast.parse(each.annotation))} - _BUILTINS)
        ),
    )


_HEAD = """{}

from __future__ import annotations
"""


def _ordered(classes: Mapping[Name, ast.ClassDef], groups: Iterable[Sequence[Name]]) -> tuple[Name, ...]:
    """The classes by groups, with those that a class refers to before it, as far as they do not refer to each other.

    Those with a type in brackets after their base come last, since Python reads that at once: each after those that it
    names without quotes.
    """
    order = [name for group in groups for name in _after({name: _names(classes[name]) for name in group})]
    read = [name for name in order if isinstance(classes[name].bases[0], ast.Subscript)]
    at_once = {name: _names(classes[name].bases[0]) for name in read}
    return (*(name for name in order if name not in at_once), *_after(at_once))


def _after(named: Mapping[Name, Iterable[str]]) -> tuple[Name, ...]:
    """Names, each after those that it names, as far as they do not name each other."""
    order: dict[Name, None] = {}
    entered: set[Name] = set()

    def enter(name: Name) -> None:
        if name in entered:
            return
        entered.add(name)
        for other in map(Name, named[name]):
            if other in named:
                enter(other)
        order[name] = None

    for name in named:
        enter(name)
    return tuple(order)


_BUILTINS = frozenset({"bool", "dict", "float", "int", "list", "str", "tuple"})


def _imports(known: Mapping[Name, Iterable[str]], shared: Mapping[Name, Name]) -> Iterator[Code]:
    """The lines that import these names: from far to near, with an empty line between the kinds of modules."""
    kinds = defaultdict(list)
    for home, names in {**known, **{home: {name} for home, name in shared.items()}}.items():
        if names:
            kinds["." if home.startswith(".") else home].append((-home.count("."), home, sorted(names)))
    for number, kind in enumerate(kinds.values()):
        if number:
            yield code("")
        for _, home, names in sorted(kind):
            yield code("from {} import {}", home, join(", ", map(Name, names)))


def _names(node: ast.AST) -> Iterator[str]:
    return (inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name))


def _parameters(written: ast.ClassDef, rows: Iterable[Row]) -> Iterator[Parameter]:
    annotations = {
        node.target.id: node.annotation
        for node in written.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    for row in rows:
        annotation = annotations[row.name]
        if row.wire != row.name:
            annotation = _inside(annotation)
        match row.form, annotation:
            case "absent", ast.BinOp(left=kept):
                kind = _text(kept)
            case "nullable", ast.Subscript(slice=kept):
                kind = _text(kept) if _takes_none(kept) else code("{} | None", _text(kept))
            case _:
                kind = _text(annotation)
        yield Parameter(row.wire, row.name, kind, row.required, row.nullable, row.doc, row.source)


def _inside(annotation: ast.expr) -> ast.expr:
    """`T` of `Annotated[T, Field(alias=…)]`."""
    if isinstance(annotation, ast.Subscript) and isinstance(annotation.slice, ast.Tuple):
        return annotation.slice.elts[0]
    return annotation


def _takes_none(annotation: ast.expr) -> bool:
    """Whether `None` is in a type already."""
    return any(_text(choice) in ("Any", "None") for choice in _choices(annotation))


def _text(annotation: ast.expr) -> Code:
    """A type that was looked through. `ast.unparse` alone goes a level deeper with each choice of a union."""
    match annotation:
        case ast.BinOp():
            return join(" | ", map(_text, _choices(annotation)))
        case ast.Subscript(value=base, slice=ast.Tuple(elts=parts)) if len(parts) > 1:
            return code("{}[{}]", _text(base), join(", ", map(_text, parts)))
        case ast.Subscript(value=base, slice=ast.BinOp() | ast.Subscript() as inner):
            return code("{}[{}]", _text(base), _text(inner))
        case _:
            return trusted(ast.unparse(annotation))


def _choices(annotation: ast.expr) -> list[ast.expr]:
    """The types of a union, or the one type."""
    choices = []
    while isinstance(annotation, ast.BinOp):
        choices.append(annotation.right)
        annotation = annotation.left
    return [annotation, *reversed(choices)]


def _generate(plans: Iterable[ClassPlan], used: Iterable[Imported]) -> str:
    """What the generator writes for these classes: a module, with imports that are not used."""
    from datamodel_code_generator import GenerateConfig, InputFileType, LiteralType, PythonVersion, generate
    from datamodel_code_generator.enums import DataModelType

    roots = {plan.name for plan in plans if plan.root is not None}
    definitions = {plan.name: _definition(plan, roots) for plan in plans}
    for each in used:
        definitions[each.name] = {"x-python-import": {"module": each.module.lstrip("."), "name": each.name}}
    config = GenerateConfig(
        input_file_type=InputFileType.JsonSchema,
        output_model_type=DataModelType.PydanticV2BaseModel,
        target_python_version=PythonVersion.PY_311,
        custom_template_dir=templates() / "models",
        extra_template_data=defaultdict(dict, {plan.name: {"plan": _view(plan)} for plan in plans}),
        enum_field_as_literal=LiteralType.All,
        formatters=[],
        disable_timestamp=True,
        skip_root_model=True,
        strict_nullable=True,
        use_annotated=True,
        use_standard_collections=True,
        use_tuple_for_fixed_items=True,
        use_union_operator=True,
    )
    text = generate(json.dumps({"$defs": definitions}), config=config)
    if not isinstance(text, str):
        raise TypeError(f"datamodel-code-generator gave {type(text).__name__}")
    return text


def _definition(plan: ClassPlan, roots: Collection[str]) -> Json:
    """A class as a schema. Its properties go by the names of the attributes, and all are required: whether one can be
    absent is told to the template, not to the generator. `roots` are the classes that come last."""
    if plan.root is not None:
        # The generator forgets the items of a list that is recursive at the top.
        return {"anyOf": [_with_tuples(plan.root, roots)]}
    properties = {row.name: _with_tuples(row.schema) for row in plan.rows}
    return {"type": "object", "properties": properties, "required": list(properties)}


def _with_tuples(schema: Json, later: Collection[str] = ()) -> Json:
    """The schema with each tuple as its type's text, since the generator would make a class of one in another type.

    A type in brackets after a base is read at once, and the generator takes no text with quotes in it: there a tuple
    that holds one of the classes `later` becomes a list.
    """
    match schema:
        case {"prefixItems": items} if any(_holds(item, later) for item in items):
            return {"type": "array", "items": {"anyOf": [_with_tuples(item, later) for item in items]}}
        case {"prefixItems": _}:
            return {"type": "object", "x-python-type": python(schema)}
        case {"anyOf": choices}:
            return {"anyOf": [_with_tuples(choice, later) for choice in choices]}
        case {"type": "array", "items": item}:
            return {"type": "array", "items": _with_tuples(item, later)}
        case {"type": "object", "additionalProperties": values}:
            return {"type": "object", "additionalProperties": _with_tuples(values, later)}
        case _:
            return schema


def _holds(schema: Json, names: Collection[str]) -> bool:
    """Whether a schema that holds nothing but types refers to one of these classes."""
    match schema:
        case {"$ref": reference}:
            return reference.rpartition("/")[2] in names
        case {"anyOf": parts} | {"prefixItems": parts}:
            return any(_holds(part, names) for part in parts)
        case {"items": inner} | {"additionalProperties": inner}:
            return _holds(inner, names)
        case _:
            return False


def _redacted(plan: ClassPlan) -> Code:
    """The keyword of a class that says what it does not show."""
    return code("redacted={{{}}}", join(", ", map(literal, plan.redacted)))


def _view(plan: ClassPlan) -> dict[str, Any]:
    """A class as the templates need it: everything in it is Python source, which the generator writes as it is."""
    keywords = [
        *([code('extra="forbid"')] if plan.closed else ()),
        *([_redacted(plan)] if plan.redacted else ()),
    ]
    return {
        "bases": join(", ", [Name("Model"), *keywords]),
        "doc": docstring(plan.doc, 4),
        "rows": {
            row.name: {
                "name": checked(row.name),
                "form": row.form,
                "alias": literal(row.wire) if row.wire != row.name else None,
                "default": checked(row.default) if row.default is not None else None,
                "doc": docstring(row.doc, 4) if row.doc else None,
            }
            for row in plan.rows
        },
    }
