"""What handwritten modules use that their package does not have; and all that must not be taken for it."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

import amounts
import packages
import stubwright_runtime
from stubwright.codegen import surface
from stubwright.codegen.pages import interface
from stubwright.codegen.pages.interface import Interface
from stubwright.compile import pipeline
from stubwright.diagnostics import Span
from stubwright.ir import Manifest
from stubwright.project.files import disk
from stubwright.project.handwritten import handlers, reading
from stubwright.project.handwritten.handlers import HandwrittenClass

ROOT = Path(__file__).parents[2]
MANIFESTS = [
    *sorted((ROOT / "specs").glob("*.yaml")),
    ROOT / "specs" / "everything" / "everything.yaml",
    *sorted((ROOT / "tests" / "cases").glob("package-*/manifest.yaml")),
    *sorted((ROOT / "tests" / "cases").glob("classes-*/manifest.yaml")),
]


def compiled(path: Path) -> pipeline.Result:
    return pipeline.compile_manifest(str(path), disk.Disk())


# The interface, as it is known without making the package


@pytest.mark.parametrize("path", amounts.sample(MANIFESTS, 2), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_interface_is_that_of_the_package(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    result = compiled(path)
    if result.manifest is None:
        pytest.skip("is wrong on purpose")
    known = Interface(result.manifest)
    package = str(result.manifest.package)
    for artifact in pipeline.generate(result.manifest):
        file = tmp_path / artifact.path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(artifact.data)
    files = [file.relative_to(tmp_path) for file in (tmp_path / package).rglob("*.py")]
    assert known.modules == {".".join(file.with_suffix("").parts).removesuffix(".__init__") for file in files}
    with packages.imported(tmp_path, package) as module:
        assert known.exports == {*dir(module)}
        assert all(known.has(package, name) for name in dir(module))
        assert not known.has(package, "Gone")
        assert known.models == {*dir(importlib.import_module(f"{package}.models"))}
        for name, attributes in known.contexts.items():
            assert attributes == _public(getattr(module, name)), name


def _public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not reading.is_dunder(name)}


def test_what_is_read_of_the_context_is_what_it_has() -> None:
    assert interface.find_context_members() == _public(stubwright_runtime.Context)


# Imports

MANIFEST = """\
stubwright: 1
server: {name: x, version: 1.0.0}
python: {handlers: "x:X"}
tools:
  - {name: get, description: Gets., inputSchema: {type: object}}
  - name: say
    description: Says.
    inputSchema: {type: object}
    stubwright: {ask: {mood: {message: How?, schema: {type: object, properties: {mood: {type: string}}}}}}
"""


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    path = tmp_path_factory.mktemp("x") / "x.yaml"
    path.write_text(MANIFEST)
    made = compiled(path).manifest
    assert made is not None
    return made


def stale(manifest: Manifest, text: str) -> list[str]:
    """What is said of the imports and the contexts of a module, with where it stands."""
    written = HandwrittenClass("x.py", text, "X", "XHandlers", "x_mcp")
    needed = surface.list_handler_methods(manifest)
    found = handlers.compare(written, needed, interface=Interface(manifest)).diagnostics
    lines = []
    for each in found:
        if each.code in ("SW428", "SW429"):
            assert isinstance(each.at, Span)
            lines.append(f"{each.at.line}:{each.at.column}-{each.at.end_column} {each.message}")
    return lines


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("from x_mcp import Gone as gone\n", ["1:19-23 `x_mcp` has no `Gone`"]),
        ("é = 1; from x_mcp import TOOLS, Gone\n", ["1:33-37 `x_mcp` has no `Gone`"]),
        ("from x_mcp import (\r\n    TOOLS,\r\n    Gone,\r\n)\r\n", ["3:5-9 `x_mcp` has no `Gone`"]),
        ("class A:\n    def b(self):\n        from x_mcp import Gone\n", ["3:27-31 `x_mcp` has no `Gone`"]),
        ("try:\n    from x_mcp import Gone\nexcept ValueError: ...\n", ["2:23-27 `x_mcp` has no `Gone`"]),
        ("import x_mcp.gone as gone\n", ["1:8-18 there is no module `x_mcp.gone`"]),
        ("from x_mcp.gone import Context\n", ["1:24-31 there is no module `x_mcp.gone`"]),
        ("from x_mcp.models import Context\n", ["1:26-33 `x_mcp.models` has no `Context`"]),
        ("from stubwright_runtime import Gone\n", ["1:32-36 `stubwright_runtime` has no `Gone`"]),
        ("from x_mcp import *\nfrom x_mcp.gone import *\n", []),
        ("from x_mcp import models, handlers, GetInput, SayMoodAnswer, ToolFailed, __doc__\n", []),
        ("from x_mcp.models import get, GetInput\nfrom x_mcp.models.get import Field\n", []),
        ("import x_mcp, x_mcp.models.get\nimport other\nfrom other import Gone\n", []),
        ("from .x_mcp import Gone\nfrom . import x_mcp_gone\nfrom x_mcp_more import Gone\n", []),
        ("from stubwright_runtime import server, Context, IncompatibleRuntimeError\n", []),
        ("if TYPE_CHECKING:\n    from x_mcp import Gone\n", []),
        ("try:\n    from x_mcp import Gone\nexcept (ValueError, ImportError): ...\n", []),
        ("try:\n    from x_mcp import Gone\nexcept: ...\n", []),
        ("if sys.version_info > (3, 12):\n    import x_mcp.gone\nelse:\n    from x_mcp import Gone\n", []),
    ],
)
def test_imports_of_what_is_not_there(manifest: Manifest, text: str, expected: list[str]) -> None:
    assert stale(manifest, text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import x_mcp as api\nx: api.Gone\n", ["2:8-12 `x_mcp` has no `Gone`"]),
        ("import x_mcp\nclass A(x_mcp.Gone): ...\n", ["2:15-19 `x_mcp` has no `Gone`"]),
        ("import x_mcp as api\nclass A:\n    def b(self, c: api.Gone): ...\n", ["3:24-28 `x_mcp` has no `Gone`"]),
        ("def a():\n    import x_mcp as api\n    'é', api.Gone\n", ["3:14-18 `x_mcp` has no `Gone`"]),
        ("import x_mcp as api\nlambda b: (api\n  .Gone)\n", ["3:4-8 `x_mcp` has no `Gone`"]),
        ("import x_mcp as api\napi.models.Gone.more\n", ["2:12-16 `x_mcp.models` has no `Gone`"]),
        ("import x_mcp.models as m\nm.Context\n", ["2:3-10 `x_mcp.models` has no `Context`"]),
        ("from x_mcp import models as m\nm.Context\n", ["2:3-10 `x_mcp.models` has no `Context`"]),
        ("import stubwright_runtime as r\nr.Gone\n", ["2:3-7 `stubwright_runtime` has no `Gone`"]),
        ("import x_mcp, x_mcp.models\nx_mcp.Gone\n", ["2:7-11 `x_mcp` has no `Gone`"]),
        ("import x_mcp.gone\nx_mcp.gone.Thing\n", ["1:8-18 there is no module `x_mcp.gone`"]),
        ("import x_mcp.gone.more\nx_mcp.gone.more\n", ["1:8-23 there is no module `x_mcp.gone.more`"]),
        ("import x_mcp as api\napi.GetInput, api.models, api.models.get.Any, api.__path__\n", []),
        ("import stubwright_runtime as r\nr.Context, r.server.Any\n", []),
        ("import x_mcp as api\nif hasattr(api, 'Gone'): api.Gone\n", []),
        ("import x_mcp as api\nif hasattr(api, name): api.Gone\n", []),
        ("import os, x_mcp as api\nhasattr(os, name), api.Gone\n", ["2:24-28 `x_mcp` has no `Gone`"]),
        ("import x_mcp as api\napi.mine = 1\napi.mine\n", []),
        ("import x_mcp as api\ntry: api.Gone\nexcept AttributeError: ...\n", []),
        ("import x_mcp as api\nif TYPE_CHECKING: api.Gone\n", []),
        ("import x_mcp as api\ndef a(api): api.Gone\n", []),
        ("import x_mcp as api\nlambda api: api.Gone\n", []),
        ("import x_mcp as api\ndef a():\n    api = 1\n    api.Gone\n", []),
        ("import x_mcp as api\n[api.Gone for api in b]\n", []),
        ("try: import x_mcp as api\nexcept ImportError: api = None\napi.Gone\n", []),
        ("import x_mcp as api\nimport other as api\napi.Gone\n", []),
        ("from . import x_mcp as api\napi.Gone\n", []),
        ("import other as api\napi.Gone\n", []),
    ],
)
def test_attributes_of_the_package_that_are_not_there(manifest: Manifest, text: str, expected: list[str]) -> None:
    assert stale(manifest, text) == expected


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("FetchInput", "write `GetInput`, as it is called now"),
        ("GetInputs", "did you mean `GetInput`?"),
        ("Unlike", "remove what uses it"),
    ],
)
def test_what_to_write_in_place_of_an_attribute(manifest: Manifest, name: str, remedy: str) -> None:
    written = HandwrittenClass("x.py", f"import x_mcp as api\nx: api.{name}\n", "X", "XHandlers", "x_mcp")
    found = handlers.compare(written, (), renamed={"fetch": "get"}, interface=Interface(manifest)).diagnostics
    assert [each.help for each in found if each.code == "SW428"] == [remedy]


# Contexts

HEAD = "from x_mcp import Context, GetInput, SayContext, XHandlers\nimport x_mcp as x\n"


def get(body: str, signature: str = "async def get(self, args, ctx):") -> str:
    """A handler of a tool that asks nothing."""
    return f"{HEAD}class X(XHandlers):\n    {signature}\n        {body}\n"


def say(body: str) -> str:
    """A handler of a tool that asks."""
    return get(body, "async def say(self, args, ctx: SayContext):")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (get("ctx.ask.mood()"), ["5:13-16 Context ask"]),
        (get("ctx.ask", "def get(self, args, ctx: Context):"), ["5:13-16 Context ask"]),
        (get("ctx.ask", "def get(self, args, ctx: x.Context):"), ["5:13-16 Context ask"]),
        (get("ctx.ask", "def get(self, args, ctx: 'Context'):"), ["5:13-16 Context ask"]),
        (get("ctx.ask", "@staticmethod\n    def get(args, ctx):"), ["6:13-16 Context ask"]),
        (get("c = ctx; d: object = c; d.ask"), ["5:35-38 Context ask"]),
        (get("f = lambda: ctx.ask"), ["5:25-28 Context ask"]),
        (get("return (\n            ctx\n            .ask)"), ["7:14-17 Context ask"]),
        (get("getattr(ctx, 'ask'); ctx.get.ask; other.ask"), ["5:34-37 Context get"]),
        (say("ctx.ask.mood(); ctx.gone"), ["5:29-33 SayContext gone"]),
        (f"{HEAD}def help(a, *, ctx: SayContext): ctx.gone", ["3:38-42 SayContext gone"]),
        (f"{HEAD}def help(ctx: Context):\n    def more(): ctx.gone", ["4:21-25 Context gone"]),
        (f"{HEAD}try: pass\nfinally: pass\nasync def help(c: Context): c.gone", ["5:31-35 Context gone"]),
    ],
)
def test_attributes_that_contexts_do_not_have(manifest: Manifest, text: str, expected: list[str]) -> None:
    places = [line.split(" ") for line in expected]
    assert stale(manifest, text) == [f"{at} `{name}` has no attribute `{attribute}`" for at, name, attribute in places]


@pytest.mark.parametrize(
    "text",
    [
        get("ctx.progress(1); ctx.roots(); ctx.sample('x'); ctx.can('roots'); ctx.__class__; ctx._request"),
        get("ctx.ask", "def get(self, args, ctx: object):"),
        get("ctx.ask", "def get(self, args, ctx: Own):"),
        get("ctx.ask", "def get(self, args, ctx: Context | None):"),
        get("ctx.ask", "@changed\n    def get(self, args, ctx):"),
        get("all.ask", "def get(self, *all):"),
        get("if hasattr(ctx, 'ask'): ctx.ask"),
        get("if hasattr(ctx, name): ctx.ask"),
        get("if isinstance(ctx, SayContext): ctx.ask"),
        get("match ctx:\n            case SayContext(): ctx.ask"),
        get("setattr(ctx, 'mine', 1); ctx.mine"),
        get("ctx.mine = 1") + "def help(ctx: Context): return ctx.mine",
        get("try: ctx.ask\n        except AttributeError: ..."),
        get("try: ctx.ask\n        except Exception: ..."),
        get("if TYPE_CHECKING: ctx.ask"),
        get("ctx = other(ctx); ctx.ask"),
        get("with other() as ctx: ctx.ask"),
        get("[ctx.ask for ctx in others]"),
        get("def inner(ctx): ctx.ask"),
        get("f = lambda ctx: ctx.ask"),
        get("c = ctx\n        c = other\n        c.ask"),
        get("for c in others:\n            c.ask\n        c = ctx"),
        get("ctx.ask\n    say = get"),
        get("ctx.ask\n    def say(self, args, ctx): return self.get(args, ctx)"),
        f"{HEAD}def help(ctx: Context): ctx.ask",
        f"{HEAD}class Context: ...\ndef help(ctx: Context): ctx.gone",
        f"{HEAD}class Own(Context): ...\ndef help(ctx: Own, other): ctx.gone; other.gone",
        "from other import Context\ndef help(ctx: Context): ctx.gone",
        "from x_mcp import *\ndef help(ctx: Context): ctx.gone",
    ],
)
def test_attributes_that_contexts_may_have(manifest: Manifest, text: str) -> None:
    assert stale(manifest, text) == []
