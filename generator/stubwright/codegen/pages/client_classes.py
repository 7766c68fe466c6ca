"""The client page's classes: the client, its responses and its tasks, each also for every toolset.

The client defines the tool methods. The other classes reuse these methods, except for a deprecated tool's, which would
lose its decorator. Every toolset has all resources and prompts; their methods are in a common base
class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from stubwright import naming
from stubwright.codegen.source.render import ClientClass, render_client_class
from stubwright.pycode import Name, fill

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stubwright import ir
    from stubwright.codegen.pages.primitive_code import PackageCode, PrimitiveCode
    from stubwright.pycode import Code

_RESPONSES: Final = "The tool methods, returning a `CallResponse`: the model, the content and `_meta`, or the error."
_TASKS: Final = "The methods of tools that can run as tasks. Each starts a task; `….resume(id)` resumes one."


def make_client_classes(title: str, manifest: ir.Manifest, code: PackageCode) -> Iterator[Code]:
    """Yield the client page's classes, each followed by the methods that it defines itself."""
    client = naming.name_client_class(manifest.stem)
    base = Name("PrimitivesBinding" if code.primitives else "Binding")
    primitives = [primitive.method for primitive in code.primitives]
    if primitives and manifest.toolsets:
        yield render_client_class(ClientClass(Name("_Primitives"), base, f"The resources and prompts from {title}."))
        yield from primitives
        base, primitives = Name("_Primitives"), []
    yield render_client_class(_plan(client, base, _describe(title, manifest), Name("_"), manifest.tools))
    yield from (code.units[tool.name].method for tool in manifest.tools)
    yield from primitives
    yield from _make_views(client, Name("_"), manifest.tools, code.units)
    for name, toolset in manifest.toolsets.items():
        prefix = Name("_") + naming.name_toolset_stem(name)
        tools = [tool for tool in manifest.tools if tool.name in toolset["tools"]]
        yield render_client_class(
            _plan(
                naming.name_toolset_client(manifest.stem, name),
                base,
                _describe_toolset(name, toolset),
                prefix,
                tools,
                [(tool.names.method, _share(client, tool)) for tool in tools if tool.deprecated is None],
                name,
            )
        )
        yield from (code.units[tool.name].method for tool in tools if tool.deprecated is not None)
        yield from _make_views(client, prefix, tools, code.units)


def _plan(
    name: Name,
    base: Name,
    doc: str,
    prefix: Name,
    tools: Sequence[ir.Tool],
    methods: Sequence[tuple[Name, Code]] = (),
    toolset: str | None = None,
) -> ClientClass:
    """Plan a client class. The names of its responses and tasks classes start with `prefix`."""
    return ClientClass(
        name,
        base,
        doc,
        methods,
        toolset,
        prefix + "Responses" if tools else None,
        prefix + "Tasks" if _list_starting(tools) else None,
    )


def _make_views(
    client: Name, prefix: Name, tools: Sequence[ir.Tool], units: Mapping[str, PrimitiveCode]
) -> Iterator[Code]:
    """Yield the responses class if the client has tools, and the tasks class if a tool can run as a task."""
    if tools:
        yield _make_view(
            client, prefix + "Responses", Name("_runtime.Responses"), _RESPONSES, tools, Name("_runtime.responding")
        )
        yield from (response for tool in tools if (response := units[tool.name].response) is not None)
    if starting := _list_starting(tools):
        yield _make_view(client, prefix + "Tasks", Name("_runtime.Tasks"), _TASKS, starting, Name("_runtime.starting"))
        yield from (task for tool in starting if (task := units[tool.name].task) is not None)


def _list_starting(tools: Sequence[ir.Tool]) -> list[ir.Tool]:
    return [tool for tool in tools if tool.task_support != "forbidden"]


def _make_view(client: Name, name: Name, base: Name, doc: str, tools: Sequence[ir.Tool], wrapper: Name) -> Code:
    methods = [
        (tool.names.method, fill("{}({}.{})", wrapper, client, tool.names.method))
        for tool in tools
        if tool.deprecated is None
    ]
    return render_client_class(ClientClass(name, base, doc, methods))


def _share(client: Name, tool: ir.Tool) -> Code:
    """Return the expression by which a toolset's client reuses a method of `client`.

    Paginated methods need no wrapper.
    """
    method = fill("{}.{}", client, tool.names.method)
    return method if tool.gives_pages else fill("_runtime.sharing({})", method)


def _describe(title: str, manifest: ir.Manifest) -> str:
    primitives = ", resource and prompt" if manifest.resources or manifest.templates or manifest.prompts else ""
    return f"""Client for {title}, with one method for each tool{primitives}.

    async with {naming.name_client_class(manifest.stem)}.connect(target) as {manifest.package.removesuffix("_mcp")}:
        ...

The target is a URL, a command as a list of strings, or a server object in the same process. Arguments that
you omit are not sent. Results are checked against the tool's output schema."""


def _describe_toolset(name: str, toolset: Mapping[str, ir.Json]) -> str:
    about = toolset.get("description") or toolset.get("title")
    return f"Client for the toolset `{name}`" + (f": {about}" if about else ".")
