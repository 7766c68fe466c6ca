"""The handwritten class next to the manifest: missing, obsolete and different methods, and their stubs."""

from __future__ import annotations

import ast
import codecs
import re
import subprocess
import time
from pathlib import Path

import pytest

import amounts
import forked
from processes import start_process
from stubwright import cli, naming
from stubwright.codegen import surface
from stubwright.codegen.handler_methods import list_required_methods
from stubwright.codegen.pages import renames
from stubwright.codegen.surface import HandlerMethod, MethodRole, Parameter
from stubwright.diagnostics import Place, Span
from stubwright.project.handwritten import handlers, imports, qualified_types
from stubwright.project.handwritten.handlers import HandwrittenClass
from stubwright.pycode import Name, trust


def method(role: MethodRole, names: naming.Names, result: str, **parameters: str) -> HandlerMethod:
    return HandlerMethod(
        role=role,
        key="key",
        names=names,
        name=names.method,
        parameters=tuple(Parameter(Name(one), surface.make_plain(Name(kind))) for one, kind in parameters.items()),
        wrapper=Name("Returns" if role == "tool" else "MaybeAwaitable"),
        result=surface.make_plain(Name(result)),
        doc="Does it.",
        place=Place("x.yaml"),
    )


GET = method("tool", naming.name_tool("get"), "GetOutput", args="GetInput", ctx="Context")
SAY = method("tool", naming.name_tool("say"), "Content", args="SayInput", ctx="SayContext")
READ = method("resource", naming.name_primitive("read", "a"), "ResourceContents", ctx="Context")
NEEDED = (GET, SAY, READ)

WHOLE = """\
from __future__ import annotations
from x_mcp import XHandlers

class X(XHandlers):
    async def get(self, args: GetInput, ctx: Context) -> GetOutput: ...
    def say(self, args, ctx): ...
    def read_a(self, ctx: "Context") -> str: ...
"""


def found(text: str, *before: str) -> list[str]:
    findings = handlers.compare(HandwrittenClass("x.py", text, "X", "XHandlers"), NEEDED, dict.fromkeys(before))
    lines = []
    for one in findings.diagnostics:
        assert isinstance(one.at, Span)
        lines.append(f"{one.at.line}:{one.at.column} {one.code} {one.message}")
    return lines


def test_a_class_that_fits() -> None:
    assert found(WHOLE) == []
    assert found(WHOLE, "get", "old") == []


STRAY = ["4:7 SW420 `X` has no method `get`", "5:15 SW421 `grab` is no longer needed"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (WHOLE.replace("def say(", "def sya("), ["4:7 SW420 `X` has no method `say`"]),
        (WHOLE.replace("args: GetInput", "args: object"), []),
        (WHOLE.replace("args: GetInput", "args: x_mcp.GetInput"), []),
        (
            WHOLE.replace("args: GetInput", "args: OldInput"),
            ["5:15 SW422 `get` receives `GetInput`, not `OldInput`, as `args`"],
        ),
        (WHOLE.replace("-> GetOutput", "-> SayOutput"), ["5:15 SW422 `get` must return `GetOutput`, not `SayOutput`"]),
        (
            WHOLE.replace("(self, args, ctx)", "(self, args, ctx) -> SayOutput"),
            ["6:9 SW422 `say` must return `Content`, not `SayOutput`"],
        ),
        (WHOLE.replace("-> GetOutput", "-> OwnOutput"), []),
        (WHOLE.replace("-> GetOutput", "-> Reply[GetOutput]"), []),
        (WHOLE.replace("(self, args, ctx)", "(self, args)"), ["6:9 SW422 `say` must accept the arguments (args, ctx)"]),
        (
            WHOLE.replace("(self, args, ctx)", "(self, args, ctx, more)"),
            ["6:9 SW422 `say` must accept the arguments (args, ctx)"],
        ),
        (WHOLE.replace("(self, args, ctx)", "(self, args, ctx, more=1, *, key=2)"), []),
        (
            WHOLE.replace("(self, args, ctx)", "(self, args, ctx, *, key)"),
            ["6:9 SW422 `say` must accept the arguments (args, ctx)"],
        ),
        (WHOLE.replace("(self, args, ctx)", "(self, *all)"), []),
        (WHOLE.replace("X(XHandlers)", "X(Base)"), []),
        (WHOLE.replace("class X(XHandlers):\n", "class X(Base, XHandlers):\n    def old(self): ...\n"), []),
        ("from a import *\n", []),
        ("def __getattr__(name): ...\n", []),
        ("def make(): ...\nX = make()\n", []),
        ("try:\n    from a import X\nexcept ImportError:\n    X = None\n", []),
        ("class X(:\n", ["1:9 SW425 this is not valid Python: invalid syntax"]),
        (WHOLE.replace("def get(self, args: GetInput", "def grab(self, args: GrabInput"), STRAY),
        (
            WHOLE.replace("def get(self, args: GetInput", "def grab(self, args: Own"),
            ["4:7 SW420 `X` has no method `get`"],
        ),
    ],
)
def test_what_does_not_fit(text: str, expected: list[str]) -> None:
    assert found(text) == expected


def test_a_class_that_is_not_there() -> None:
    at = Place("x.yaml", ("python", "handlers"))
    text = WHOLE.replace("class X", "class Xx")
    findings = handlers.compare(HandwrittenClass("x.py", text, "X", "XHandlers", "x_mcp", at), NEEDED)
    [absent] = findings.diagnostics
    assert (absent.code, absent.message, absent.at) == ("SW426", "`x.py` has no `X`", at)
    assert absent.help == "did you mean `Xx`?"
    assert not findings.is_found


def test_methods_that_are_called_otherwise_are_no_stubs() -> None:
    text = WHOLE.replace("def get(", "def old_get(")
    written = HandwrittenClass("x.py", text, "X", "XHandlers")
    findings = handlers.compare(written, NEEDED, {"old_get": "OldGetOutput"}, {"old_get": "get"})
    [told] = findings.diagnostics
    assert (told.code, told.message) == ("SW427", "`old_get` was renamed to `get`")
    assert told.help == "rename it: `async def get(self, args: GetInput, ctx: Context) -> GetOutput:`"
    assert findings.missing == ()
    both = HandwrittenClass("x.py", WHOLE + "    def old_get(self, args, ctx): ...\n", "X", "XHandlers")
    findings = handlers.compare(both, NEEDED, {"old_get": "OldGetOutput"}, {"old_get": "get"})
    assert [one.message for one in findings.diagnostics] == ["`old_get` is no longer needed"]
    assert findings.missing == ()


def test_what_a_manifest_calls_otherwise() -> None:
    def document(*tools: tuple[str, str, str | None], **more: object) -> dict[str, object]:
        named = [
            {"name": name, "description": text, **({"stubwright": {"pythonName": own}} if own else {})}
            for name, text, own in tools
        ]
        return {"tools": named, **more}

    renamed = renames.match_renamed_methods
    before = document(("get", "Gets.", None), ("say", "Says.", None), ("a", "A.", "aa"))
    after = document(("fetch", "Gets.", None), ("say", "Says.", "say_it"), ("a", "A.", "aa"))
    assert renamed(before, after) == {"get": "fetch", "say": "say_it"}
    twins = document(("fetch", "Gets.", None), ("take", "Gets.", None))
    assert renamed(document(("get", "Gets.", None)), twins) == {}
    assert renamed(document(("get", "", None)), document(("fetch", "", None))) == {}
    resources = [{"resources": [{"name": name, "uri": "a:b"}]} for name in ("one", "two")]
    assert renamed(*resources) == {"read_one": "read_two"}
    prompts = [{"prompts": [{"name": name, "description": "P."}]} for name in ("p", "q")]
    assert renamed(*prompts) == {"prompt_p": "prompt_q"}
    assert renamed({}, after) == {}


# Imports


CLASS = "class X(XHandlers): pass\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "from p import A, C\n"),
        ("x = 1\n", "from p import A, C\nx = 1\n"),
        ("#!/bin/python\n# Words.\n@dataclass\nclass X: ...\n",
         "#!/bin/python\n# Words.\nfrom p import A, C\n@dataclass\nclass X: ...\n"),
        ('"""Doc."""\n\nfrom __future__ import annotations\n\nimport a\n\nx = 1\nimport b\n',
         '"""Doc."""\n\nfrom __future__ import annotations\n\nimport a\nfrom p import A, C\n\nx = 1\nimport b\n'),
        ('"""Doc."""', '"""Doc."""\nfrom p import A, C\n'),
        ("import a\r\nx = 1\r\n", "import a\r\nfrom p import A, C\r\nx = 1\r\n"),
        ("from p import B, D  # noqa\n", "from p import A, B, C, D  # noqa\n"),
        ("from p import D, B\n", "from p import D, B, A, C\n"),
        ("from p import (B as b, D); x = 1\n", "from p import A, B as b, C, D; x = 1\n"),
        ("from p import (\n    B,  # b\n    D,\n)\n",
         "from p import (\n    A,\n    B,  # b\n    C,\n    D,\n)\n"),
        ("from p import (\n    B\n)\n", "from p import (\n    A,\n    B,\n    C\n)\n"),
        ("from p import (B,\n  D)\n", "from p import (A, B,\n  C,\n  D)\n"),
        ("from p import B, \\\n    D\n", "from p import A, B, C, D\n"),
        ("from .p import B\n", "from .p import B\nfrom p import A, C\n"),
        ("from p import *\n", "from p import *\nfrom p import A, C\n"),
        ("if TYPE_CHECKING:\n    from p import B\n", "from p import A, C\nif TYPE_CHECKING:\n    from p import B\n"),
        ("from __future__ import annotations\nif TYPE_CHECKING:\n    from p import B\n",
         "from __future__ import annotations\nif TYPE_CHECKING:\n    from p import A, B, C\n"),
        (f"from p import {'B' * 80}\n",
         f"from p import (\n    A,\n    {'B' * 80},\n    C,\n)\n"),
    ],
)  # fmt: skip
def test_imports_change_nothing_else(text: str, expected: str) -> None:
    made = imports.with_imports(text, "p", ["C", "A"])
    assert made == expected
    ast.parse(made)
    assert imports.with_imports(text, "p", []) == text


def test_names_of_the_standard_library_come_from_there() -> None:
    assert imports.with_imports("", "p", ["Sequence", "A"]) == "from collections.abc import Sequence\nfrom p import A\n"


def test_stubs_bring_what_they_need() -> None:
    text = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from x_mcp import Context\n\n" + CLASS
    written = HandwrittenClass("x.py", text, "X", "XHandlers", "x_mcp")
    made = handlers.with_stubs(written, (GET,))
    assert "from x_mcp import Context, GetInput, GetOutput\nif TYPE_CHECKING:" in made
    assert "async def get(self, args: GetInput, ctx: Context) -> GetOutput:\n        raise Not" in made


@pytest.mark.parametrize(
    ("line", "signature"),
    [
        ("import x_mcp as api", "self, args: api.GetInput, ctx: api.Context) -> api.GetOutput:"),
        ("import x_mcp", "self, args: x_mcp.GetInput, ctx: x_mcp.Context) -> x_mcp.GetOutput:"),
        ("import x_mcp as api, x_mcp.models as m", "self, args: api.GetInput, ctx: api.Context) -> api.GetOutput:"),
        ("import x_mcp as api; from mine import Context", "self, args: api.GetInput, ctx: Context) -> api.GetOutput:"),
    ],
)
def test_stubs_use_the_name_by_which_their_package_is_imported(line: str, signature: str) -> None:
    text = f"{line}\n\n{CLASS}"
    written = HandwrittenClass("x.py", text, "X", "XHandlers", "x_mcp")
    assert handlers.list_names_to_import(written, (GET,)) == ()
    made = handlers.with_stubs(written, (GET,))
    assert made.startswith(f"{line}\n\nclass X")
    assert f"    async def get({signature}\n" in made


@pytest.mark.parametrize(
    "line",
    [
        "import x_mcp as api; from x_mcp import TOOLS",
        "import x_mcp as api\napi = None",
        "if TYPE_CHECKING:\n    import x_mcp as api",
        "import other as api",
    ],
)
def test_stubs_import_names_where_that_is_the_custom_or_needed(line: str) -> None:
    written = HandwrittenClass("x.py", f"{line}\n\n{CLASS}", "X", "XHandlers", "x_mcp")
    assert handlers.list_names_to_import(written, (GET,)) == ("Context", "GetInput", "GetOutput")
    assert "async def get(self, args: GetInput, ctx: Context) -> GetOutput:" in handlers.with_stubs(written, (GET,))


def test_qualified_types_keep_what_is_no_name_of_the_package() -> None:
    names = frozenset({Name("A"), Name("Mapping")})
    kind = surface.Type(trust("Mapping[str, A] | Literal['A', 'é'] | A"), (trust("A"),), names)
    made = qualified_types.qualify(kind, "api", ())
    assert made.text == "Mapping[str, api.A] | Literal['A', 'é'] | api.A"
    assert [str(choice) for choice in made.choices] == ["api.A"]
    assert made.names == {Name("Mapping"), Name("api")}


def test_methods_of_bases_in_the_module_count() -> None:
    text = WHOLE.replace("class X(XHandlers)", "class Base(XHandlers)") + "\nclass X(Base, object):\n    pass\n"
    assert found(text) == []
    assert found(text.replace("def get(", "def got(")) == ["9:7 SW420 `X` has no method `get`"]


@pytest.mark.parametrize("line", ["say = get", "say: Method = get", "other = say = get"])
def test_methods_that_are_assigned_count(line: str) -> None:
    text = WHOLE.replace("def say(self, args, ctx): ...", line)
    assert found(text) == []
    assert found(text.replace("say", "shout")) == ["4:7 SW420 `X` has no method `say`"]


def test_a_name_without_a_value_is_no_method() -> None:
    assert found(WHOLE.replace("def say(self, args, ctx): ...", "say: Method")) == ["4:7 SW420 `X` has no method `say`"]


def test_what_is_no_longer_asked_for() -> None:
    text = WHOLE + "    def old(self, args, ctx): ...\n    def helper(self): ...\n"
    assert found(text, "old", "get", "gone") == ["8:9 SW421 `old` is no longer needed"]


def test_a_result_that_a_tool_no_longer_has() -> None:
    text = WHOLE.replace("-> GetOutput", "-> OldOutput")
    findings = handlers.compare(HandwrittenClass("x.py", text, "X", "XHandlers"), NEEDED, {"old": "OldOutput"})
    assert [each.message for each in findings.diagnostics] == ["`get` must return `GetOutput`, not `OldOutput`"]


def test_the_methods_that_a_package_asked_for() -> None:
    document = {
        "tools": [{"name": "get-it"}, {"name": "say", "stubwright": {"pythonName": "say_it", "http": {"url": "/"}}}],
        "resources": [{"name": "a", "uri": "x:a"}, {"name": "b", "uri": "x:b", "stubwright": {"text": "b"}}],
        "resourceTemplates": [{"name": "c", "stubwright": {"complete": {"d": "handler"}}}],
        "prompts": [{"name": "p", "stubwright": {"messages": [], "complete": {"a": ["b"]}}}],
    }
    assert {method.name: method.result for method in list_required_methods(document)} == {
        "get_it": "GetItOutput",
        "say_it": "SayItOutput",
        "read_a": None,
        "read_c": None,
        "complete_read_c": None,
    }


@pytest.mark.parametrize(
    "text",
    [
        "class X(XHandlers):\n    pass\n",
        "class X(XHandlers): pass",
        "class X(XHandlers):\n\tdef other(self): ...\n",
        "class X(XHandlers):\r\n    async def other(self):\r\n        return 1\r\n\r\n\r\nY = X()\r\n",
        "from __future__ import annotations\n\nclass X(XHandlers):\n    '''Doc.'''\n\n# a comment\nY = 1\n",
        "from x_mcp import Context, GetInput\nclass X(XHandlers):\n    x = 1",
        "Y = 1\n\x0c\nclass X(XHandlers):\n    x = '\u2028\x85'\n    y = 1\n\n\nZ = 1\n",
        "class X(\n    XHandlers,\n): pass\n",
    ],
)
def test_stubs_go_to_the_end_of_the_class_and_change_nothing_else(text: str) -> None:
    written = HandwrittenClass("x.py", text, "X", "XHandlers")
    made = handlers.with_stubs(written, NEEDED)
    tree = ast.parse(made)
    holder = next(node for node in tree.body if isinstance(node, ast.ClassDef))
    names = [node.name for node in holder.body if isinstance(node, ast.AsyncFunctionDef)]
    assert names[-3:] == ["get", "say", "read_a"]
    kept = [line for line in text.replace("): pass", "):\n    pass").splitlines() if line.strip()]
    assert [line for line in made.splitlines() if line in kept] == kept
    assert ("\r\n" in made) == ("\r\n" in text)
    assert found(made) == []
    namespace: dict[str, object] = {"XHandlers": object, "Context": object, "GetInput": object}
    exec(made.replace("from x_mcp import Context, GetInput", ""), namespace)
    assert handlers.with_stubs(HandwrittenClass("x.py", made, "X", "XHandlers"), ()) == made


def test_names_that_stubs_need() -> None:
    text = "from x_mcp import (\n    Context,\n    GetInput,\n)\nclass X(XHandlers): pass\n"
    written = HandwrittenClass("x.py", text, "X", "XHandlers")
    assert handlers.list_names_to_import(written, NEEDED) == (
        "Content",
        "GetOutput",
        "ResourceContents",
        "SayContext",
        "SayInput",
    )


# The command

MANIFEST = """\
stubwright: 1
server: {name: diary, version: 1.0.0}
python: {handlers: "diary:Diary"}
tools:
  - {name: write, description: Writes., inputSchema: {type: object, properties: {text: {type: string}}}}
"""
MORE = "  - {name: read, description: Reads., inputSchema: {type: object}}\n"
DIARY = """\
from diary_mcp import Context, DiaryHandlers, WriteInput


class Diary(DiaryHandlers):
    def write(self, args: WriteInput, ctx: Context) -> str:
        return "written"


COUNT = 1
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "diary.yaml").write_text(MANIFEST)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "diary.py").write_text(DIARY)
    (tmp_path / "pyproject.toml").write_text('[tool.stubwright]\nmanifests = ["diary.yaml"]\n')
    return tmp_path


def stubwright(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return forked.run(arguments, cwd)


REPORT = """\
src/diary.py:4:7: warning[SW420]: `Diary` has no method `read`
    4 | class Diary(DiaryHandlers):
      |       ^^^^^
   help: write `async def read(self, args: ReadInput, ctx: Context) -> Content:`
src/diary.py:5:9: warning[SW421]: `write` is no longer needed
    5 |     def write(self, args: WriteInput, ctx: Context) -> str:
      |         ^^^^^
   help: delete or rename it
2 warnings in 1 file
"""


def test_what_a_change_asks_of_the_handlers_is_told(project: Path) -> None:
    first = stubwright("generate", cwd=project)
    assert (first.returncode, first.stderr) == (0, "")
    (project / "diary.yaml").write_text(MANIFEST.partition("  - {name: write")[0] + MORE)
    before = stubwright("check", cwd=project)
    assert (before.returncode, before.stderr) == (0, REPORT)
    told = stubwright("generate", cwd=project)
    assert (told.returncode, told.stderr) == (0, REPORT)
    checked = stubwright("check", "--strict", cwd=project)
    assert (checked.returncode, checked.stderr.count("SW420")) == (1, 1)
    assert (project / "src" / "diary.py").read_text() == DIARY


def test_stubs_are_appended_where_they_are_asked_for(project: Path) -> None:
    stubwright("generate", cwd=project)
    (project / "diary.yaml").write_text(MANIFEST + MORE)
    done = stubwright("generate", "--stubs", cwd=project)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("src/diary.py: a method appended to Diary; imported Content, ReadInput\n")
    stub = "\n    async def read(self, args: ReadInput, ctx: Context) -> Content:\n        raise NotImplementedError\n"
    made = DIARY.replace('return "written"\n', f'return "written"\n{stub}')
    made = made.replace("Context, DiaryHandlers, WriteInput", "Content, Context, DiaryHandlers, ReadInput, WriteInput")
    assert (project / "src" / "diary.py").read_text() == made
    check = "import sys; sys.path[:0] = ['generated', 'src']; import diary; print(diary.Diary.read.__annotations__)"
    assert "ReadInput" in forked.python(["-c", check], project).stdout
    again = stubwright("generate", "--stubs", "--quiet", cwd=project)
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")


@pytest.mark.parametrize(
    "manifest", amounts.sample([MANIFEST + MORE, MANIFEST + MORE + "    typo: 1\n    inputSchema: 1\n"], 1)
)
def test_stubs_are_not_appended_beside_a_package_that_is_not_written(manifest: str, project: Path) -> None:
    stubwright("generate", cwd=project)
    server = project / "generated/diary_mcp/server.py"
    server.write_text(server.read_text() + "X = 1\n")
    (project / "diary.yaml").write_text(manifest)
    before = {path: path.read_bytes() for path in project.rglob("*.*") if path.is_file()}
    done = stubwright("generate", "--stubs", cwd=project)
    assert (done.returncode, done.stdout) == (1, "diary.yaml: nothing written or appended\n")
    assert {path: path.read_bytes() for path in project.rglob("*.*") if path.is_file()} == before
    (project / "diary.yaml").write_text(MANIFEST + MORE)
    done = stubwright("generate", "--stubs", "--force", cwd=project)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (
        0,
        "src/diary.py: a method appended to Diary; imported Content, ReadInput",
    )


def test_a_renamed_tool_is_a_renamed_method(project: Path) -> None:
    stubwright("generate", cwd=project)
    (project / "diary.yaml").write_text(MANIFEST.replace("name: write", "name: jot"))
    told = "src/diary.py:5:9: warning[SW427]: `write` was renamed to `jot`"
    for verb in (["check"], ["generate", "--stubs"]):
        done = stubwright(*verb, cwd=project)
        assert (done.returncode, done.stderr.splitlines()[0]) == (0, told)
        assert "rename it: `async def jot(self, args: JotInput, ctx: Context) -> Content:`" in done.stderr
        assert re.findall(r"SW42\d", done.stderr) == ["SW427"]
    assert (project / "src" / "diary.py").read_text() == DIARY
    later = stubwright("generate", "--stubs", cwd=project)  # the package no longer has the old name
    assert "async def jot(" in (project / "src" / "diary.py").read_text()
    assert "warning[SW421]: `write` is no longer needed" in later.stderr


def test_a_module_that_is_not_right_is_told_with_its_place(project: Path) -> None:
    diary = project / "src" / "diary.py"
    for text, told in (
        (None, "diary.yaml:3:20: warning[SW424]: the module `diary` was not found in `.` or `src`"),
        (DIARY.replace("class Diary", "class Dairy"), "diary.yaml:3:20: warning[SW426]: `src/diary.py` has no `Diary`"),
        (DIARY + "def (\n", "src/diary.py:10:5: warning[SW425]: this is not valid Python: invalid syntax"),
    ):
        diary.unlink() if text is None else diary.write_text(text)
        for verb in (["check"], ["generate", "--force"], ["generate", "--stubs"]):
            done = stubwright(*verb, cwd=project)
            assert (done.returncode, done.stderr.splitlines()[0]) == (0, told)
            assert done.stderr.count("warning[") == 1
        assert text is None or diary.read_text() == text


def test_a_module_that_was_installed_is_nobody_s_business(project: Path) -> None:
    (project / "diary.yaml").write_text(MANIFEST.replace("diary:Diary", "json.decoder:JSONDecoder"))
    assert stubwright("check", cwd=project).stderr == ""


def test_stubs_leave_the_mark_at_the_start_of_a_file(project: Path) -> None:
    diary = project / "src" / "diary.py"
    diary.write_text(DIARY.replace("write", "rite"), encoding="utf-8-sig")
    assert stubwright("generate", "--stubs", cwd=project).returncode == 0
    assert diary.read_bytes().startswith(codecs.BOM_UTF8 + b"from ")
    assert "async def write(" in diary.read_text("utf-8-sig")


def test_stubs_leave_a_file_alone_that_is_not_in_utf_8(project: Path) -> None:
    diary = project / "src" / "diary.py"
    before = f"# coding: latin-1\n# é\n{DIARY.replace('write', 'rite')}".encode("latin-1")
    diary.write_bytes(before)
    done = stubwright("generate", "--stubs", cwd=project)
    assert (done.returncode, "warning[SW423]" in done.stderr) == (0, True)
    assert diary.read_bytes() == before


@pytest.mark.parametrize("name", amounts.sample(["read_bytes", "replace"], 1))
def test_handlers_that_cannot_be_read_or_written(
    name: str, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "src" / "diary.py").write_text(DIARY.replace("write", "rite"))
    stubwright("generate", cwd=project)
    whole = getattr(Path, name)

    def fails(path: Path, *arguments: Path) -> object:
        if "diary.py" in path.name and path.parent.name == "src":
            raise PermissionError(13, "Permission denied")
        return whole(path, *arguments)

    monkeypatch.chdir(project)
    monkeypatch.setattr(Path, name, fails)
    assert cli.run(["generate", "--stubs"]) == 1
    if name == "read_bytes":
        assert cli.run(["check"]) == 1
        told = "error[SW001]: `src/diary.py` cannot be read: permission denied"
        assert capsys.readouterr().err.count(told) == 2
    else:
        told = "error[SW406]: cannot append stubs to `src/diary.py`: Permission denied"
        assert told in capsys.readouterr().err
    assert [path.name for path in (project / "src").iterdir()] == ["diary.py"]


def test_watching_a_project_that_is_wrong_ends(project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool.stubwright]\nmanifests = 3\n")
    done = stubwright("generate", "--watch", cwd=project)
    assert (done.returncode, done.stdout, "error[SW410]" in done.stderr) == (1, "", True)


def test_watching_a_folder_that_is_not_there_ends(project: Path) -> None:
    done = stubwright("generate", "--watch", "nowhere/a.yaml", cwd=project)
    assert (done.returncode, done.stderr.partition("\n")[0]) == (1, "error[SW001]: `nowhere/a.yaml` does not exist")


@pytest.mark.long
def test_watching_generates_on_each_save_and_outlives_a_broken_one(project: Path) -> None:
    command = [*forked.interpreter(), "-m", "stubwright", "generate", "--watch"]
    log = project / "log"
    with log.open("wb") as out, start_process(command, cwd=project, stdout=out, stderr=out) as process:
        try:
            _until(log, "watching diary.yaml and the files that they use; interrupt to stop")
            manifest = project / "diary.yaml"
            manifest.write_text(MANIFEST + MORE)
            _until(log, "warning[SW420]: `Diary` has no method `read`")
            assert "async def read(" in (project / "generated" / "diary_mcp" / "client.py").read_text()
            manifest.write_text(MANIFEST + "  - {name: [\n")
            _until(log, "error[SW004]")
            assert "async def read(" in (project / "generated" / "diary_mcp" / "client.py").read_text()
            manifest.write_text(MANIFEST)
            _until(log, "1 file removed")
        finally:
            process.send_signal(2)
            assert process.wait(10) == 0
    assert "KeyboardInterrupt" not in log.read_text()


def _until(log: Path, text: str) -> None:
    end = time.monotonic() + 20
    while time.monotonic() < end:
        if text in log.read_text():
            return
        time.sleep(0.05)
    raise AssertionError(f"{text!r} was not printed in:\n{log.read_text()}")


def test_commands_that_exclude_each_other(project: Path) -> None:
    for option in ("--watch", "--stubs"):
        done = stubwright("generate", "--check", option, cwd=project)
        assert done.returncode == 2
        assert done.stderr.startswith("stubwright: --")


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_shells_complete(shell: str, tmp_path: Path) -> None:
    done = stubwright("completion", shell, cwd=tmp_path)
    assert done.returncode == 0
    assert "generate" in done.stdout
    script = tmp_path / "completion"
    script.write_text(done.stdout)
    if shell == "bash":
        (tmp_path / "specs").mkdir()
        (tmp_path / "spare.yaml").touch()
        for words, expected in (
            ("check a.yaml sp", ["spare.yaml", "specs"]),
            ("docs -o sp", ["specs"]),
            ("import openapi sp", ["spare.yaml", "specs"]),
        ):
            asked = f"COMP_WORDS=(stubwright {words}); COMP_CWORD={len(words.split())}; _shtab_stubwright"
            command = ["bash", "-c", f'. ./completion; {asked}; printf "%s\\n" "${{COMPREPLY[@]}}"']
            done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
            assert (sorted(done.stdout.split()), done.stderr) == (expected, "")
