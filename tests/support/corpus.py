"""Generated packages for public servers' tools, built once, with echoing handlers and the models' annotations."""

from __future__ import annotations

import itertools
import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin
from urllib.parse import unquote

from mcp_types import TextContent
from pydantic import RootModel

import instances
from amounts import choose
from stubwright import cli, naming
from stubwright.importers import tools
from stubwright_runtime.schema.validation import compile_schema

Json = Any

VARIABLE = "STUBWRIGHT_WHOLE_CORPUS"
"""The environment variable that selects a sample (unset), `many`, or the whole corpus, which takes some minutes."""

EVERY = choose(VARIABLE, 20, 6, 1)
"""Tests use one of this many servers."""

EVERY_RICH = choose(VARIABLE, 10, 6, 1)
"""Tests with `python: {formats: rich}` use one of this many servers whose tools have formats."""

SHARDS = choose(VARIABLE, 2, 8, 16)
"""The number of tests for each pass over the corpus, which distributes a pass over processes."""

TRIES = choose(VARIABLE, 8, 8, 20)
"""The number of attempts at an instance of each schema."""

_COMBINING = ("allOf", "anyOf", "oneOf")


def files(corpus: Path, shard: int | None = None) -> list[Path]:
    """Return the saved tool lists for this run: all of them, or one shard."""
    found = sorted((corpus / "tools").glob("*.json"))[::EVERY]
    return found if shard is None else found[shard::SHARDS]


def rich_files(corpus: Path, shard: int | None = None) -> list[Path]:
    """Return the saved lists for this run that contain strings with rich formats."""
    found = [path for path in sorted((corpus / "tools").glob("*.json")) if _FORMATS.search(path.read_text("utf-8"))]
    taken = found[::EVERY_RICH]
    return taken if shard is None else taken[shard::SHARDS]


_FORMATS = re.compile(r'"format": ?"(date|date-time|time|uri|uuid)"|"base64"')


@dataclass(frozen=True, slots=True)
class Server:
    """A public server as a generated package. `tools` are the imported manifest's tools."""

    package: str
    client: str
    tools: Sequence[Mapping[str, Json]]


def imported(path: Path) -> tools.Draft:
    """Return a saved list as the manifest of `stubwright import tools`."""
    listed, info = tools.read(path.read_text("utf-8"))
    return tools.make_manifest(listed, name=info.get("name", path.stem), info=info)


def build(path: Path, folder: Path, *, rich: bool = False) -> Server:
    """Build the package of a server below `folder` through the command line if it does not exist.

    Processes may build the same package concurrently: each builds a copy, and the first to finish moves it into place.
    The package is named after the file, because the corpus has several servers with the same name. `rich` builds a
    separate package with `python: {formats: rich}`.
    """
    name = f"{path.stem}-rich" if rich else path.stem
    package = naming.name_package(name)
    if not (folder / package).is_dir():
        folder.mkdir(exist_ok=True)
        own = Path(tempfile.mkdtemp(dir=folder.parent))
        manifest = own / "manifest.yaml"
        assert cli.run(["import", "tools", str(path), "--name", name, "-o", str(manifest)]) == 0, path.stem
        if rich:
            manifest.write_text(f"{manifest.read_text('utf-8')}\npython: {{formats: rich}}\n", "utf-8")
        assert cli.run(["generate", str(manifest), "-o", str(own / "made")]) == 0, path.stem
        try:
            (own / "made" / package).rename(folder / package)
        except OSError:
            assert (folder / package).is_dir()
    wire = [
        {key: item for key, item in tool.items() if key != "stubwright"} for tool in imported(path).manifest["tools"]
    ]
    return Server(package, f"{naming.name_server_stem(name)}Client", wire)


@dataclass(frozen=True, slots=True)
class Call:
    """A call: its arguments, and a result for a tool with an `outputSchema`, if an instance was found."""

    tool: str
    arguments: dict[str, Json]
    has_result: bool
    result: Json


def calls(tool: Mapping[str, Json], seed: str) -> list[Call]:
    """Return calls to a tool with random valid arguments and results."""
    name = tool["name"]
    arguments = instances.valid(tool["inputSchema"], f"{seed} {name} input", TRIES)
    results = instances.valid(tool["outputSchema"], f"{seed} {name} output", TRIES) if "outputSchema" in tool else []
    count = max(len(arguments), len(results)) if arguments else 0
    pairs = zip(itertools.cycle(arguments), itertools.cycle(results or [None]), strict=False)
    return [Call(name, given, bool(results), result) for given, result in itertools.islice(pairs, count)]


def only_named(call: Call, schema: Mapping[str, Json], names: frozenset[str]) -> Call | None:
    """Return the call without arguments outside `names`, if it stays valid."""
    arguments = {name: value for name, value in call.arguments.items() if name in names}
    accepted = compile_schema({**schema}, formats=False).is_valid(arguments)
    return Call(call.tool, arguments, call.has_result, call.result) if accepted else None


class Echo:
    """Handlers that return the current call's result, followed by its arguments as JSON text.

    Tools with an `outputSchema` but without an instance return an error with the same text.
    """

    def __init__(self, module: Any) -> None:
        self.module = module
        self.call: Call | None = None
        self.seen: Json = None
        for tool in module.TOOLS.values():
            setattr(self, tool.method, self._handler(tool))

    def _handler(self, tool: Any) -> Any:
        async def answer(args: Any, ctx: Any) -> Any:
            self.seen = args.model_dump(mode="json")
            echoed = json.dumps(self.seen)
            if tool.Output is None:
                return echoed
            if self.call is None or not self.call.has_result:
                raise self.module.ToolError(echoed)
            model = tool.Output.model_validate(self.call.result)
            return self.module.Reply(model, [TextContent(type="text", text=echoed)])

        return answer


@dataclass(frozen=True, slots=True)
class Annotated:
    """A field of a generated model: its annotation and its schemas."""

    place: str
    annotation: Any
    schemas: Sequence[Json]


def annotated(model: Any, schema: Json) -> Iterator[Annotated]:
    """Return all fields of a generated model and its nested models, with their schemas."""
    pending = [(model, [schema])]
    seen = set()
    while pending:
        cls, schemas = pending.pop()
        if cls in seen:
            continue
        seen.add(cls)
        for field in _fields(cls, schemas, schema):
            yield field
            within = [*_within(field.schemas, schema)]
            pending += [(below, within) for below in _classes(field.annotation)]


def _fields(cls: Any, schemas: Sequence[Json], root: Json) -> Iterator[Annotated]:
    parts = [part for each in schemas for part in _parts(each, root)]
    for name, info in cls.model_fields.items():
        wire = info.alias or name
        own = [part["properties"][wire] for part in parts if wire in (part.get("properties") or {})]
        is_value = issubclass(cls, RootModel)
        yield Annotated(f"{cls.__name__}.{name}", info.annotation, schemas if is_value else own)


def is_wide(annotation: Any, schemas: Sequence[Json], root: Json) -> bool:
    """Return whether an annotation contains `Any` although one of the schemas there has types.

    A list that may continue after its `prefixItems` permits any items there, so it is never too wide.
    """
    if annotation is Any:
        return any(_typed(schema, root, 0) for schema in schemas)
    inner: Sequence[Json] = schemas
    if get_origin(annotation) in (list, tuple):
        if any(_goes_on(part) for part in _all_parts(schemas, root)):
            return False
        inner = [below for part in _all_parts(schemas, root) for below in _items(part)]
    elif get_origin(annotation) is dict:
        inner = [below for part in _all_parts(schemas, root) for below in _values(part)]
    elif get_origin(annotation) is Literal:
        return False
    return any(is_wide(part, inner, root) for part in get_args(annotation))


def _typed(schema: Json, root: Json, depth: int) -> bool:
    if not isinstance(schema, dict) or depth > 9:
        return False
    if schema.keys() & {"type", "enum", "const"}:
        return True
    if "$ref" in schema and _typed(_resolved(schema["$ref"], root), root, depth + 1):
        return True
    if any(_typed(part, root, depth + 1) for part in schema.get("allOf") or ()):
        return True
    choices = [schema.get(word) for word in ("anyOf", "oneOf")]
    return any(each and all(_typed(part, root, depth + 1) for part in each) for each in choices)


def _parts(schema: Json, root: Json, depth: int = 0) -> Iterator[dict[str, Json]]:
    """Return a schema and its subschemas for the same value."""
    if not isinstance(schema, dict) or depth > 9:
        return
    yield schema
    below = [part for word in _COMBINING for part in schema.get(word) or ()]
    below += [schema[word] for word in ("if", "then", "else", "not") if word in schema]
    below += [_resolved(schema["$ref"], root)] if "$ref" in schema else []
    for part in below:
        yield from _parts(part, root, depth + 1)


def _all_parts(schemas: Sequence[Json], root: Json) -> Iterator[dict[str, Json]]:
    for schema in schemas:
        yield from _parts(schema, root)


def _within(schemas: Sequence[Json], root: Json, depth: int = 0) -> Iterator[Json]:
    """Return schemas with the schemas of nested lists and mappings at any depth."""
    yield from schemas
    below = [inner for part in _all_parts(schemas, root) for inner in (*_items(part), *_values(part))]
    if below and depth < 6:
        yield from _within(below, root, depth + 1)


def _goes_on(schema: Mapping[str, Json]) -> bool:
    """Return whether a list may continue with any items after the schemas by index."""
    if isinstance(schema.get("items"), list):
        return "additionalItems" not in schema
    return "prefixItems" in schema and "items" not in schema


def _items(schema: Mapping[str, Json]) -> list[Json]:
    """Return the schemas for a list's items."""
    found = [schema.get(word) for word in ("items", "prefixItems", "additionalItems")]
    return [one for each in found for one in (each if isinstance(each, list) else [each])]


def _values(schema: Mapping[str, Json]) -> list[Json]:
    """Return the schemas for an object's additional properties."""
    return [schema.get("additionalProperties"), *(schema.get("patternProperties") or {}).values()]


def _classes(annotation: Any) -> list[Any]:
    """Return the models in an annotation."""
    if isinstance(annotation, type) and hasattr(annotation, "model_fields"):
        return [annotation]
    return [cls for part in get_args(annotation) for cls in _classes(part)]


def _resolved(reference: str, root: Json) -> Json:
    here = root
    for step in unquote(reference.removeprefix("#")).split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        here = here[int(name)] if isinstance(here, list) else (here or {}).get(name)
    return here
