"""Text stays text: no text in a manifest, a server or a document becomes code, markup or a command."""

from __future__ import annotations

import ast
import fcntl
import hashlib
import itertools
import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import yaml

import amounts
import forked
import pages
import payloads
from amounts import choose
from payloads import BASE, HARMLESS, PAYLOADS, Place
from stubwright import cli, diagnostics, pycode
from stubwright.codegen.models import inspection
from stubwright.codegen.source import render
from stubwright.compile import pipeline
from stubwright.docs.texts import escape_invisible as page_text
from stubwright.project.files import disk

pytestmark = pytest.mark.payloads

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "generator" / "stubwright"
VARIABLE = "STUBWRIGHT_WHOLE_PAYLOADS"
WHOLE = VARIABLE in os.environ
IS_ALL = bool(choose(VARIABLE, 0, 0, 1))
PLACES = payloads.places(BASE)
NUMBERS = {place: number for number, place in enumerate(PLACES)}

Settle: TypeAlias = Callable[[str, Sequence[Place]], list[Place]]


def test_the_base_has_something_at_every_place() -> None:
    there = {place.rule for place in PLACES}
    assert sorted(payloads.declared() - there) == []
    assert sorted(there - payloads.declared()) == []


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in payloads.FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def check(folder: Path, value: Any) -> pipeline.Result:
    path = folder / "manifest.json"
    path.write_text(json.dumps(value))
    return pipeline.compile_manifest(str(path), disk.Disk(), "manifest.json")


def generated(checked: pipeline.Result) -> dict[str, bytes]:
    assert checked.manifest is not None
    made = pipeline.generate(checked.manifest)
    return {artifact.path: artifact.data for artifact in made}


def settled(folder: Path, payload: str, at: Sequence[Place]) -> list[Place]:
    """Return the places that accept a payload, all in one pass."""
    kept: list[Place] = []
    waiting = [sorted(at, key=lambda place: (place.rule[-1:], place.rule, place.kind))]  # groups similar places
    while waiting:
        group = waiting.pop()
        if not group:
            continue
        tried = [*kept, *group]
        checked = check(folder, payloads.replace_texts(BASE, dict.fromkeys(tried, payload)))
        if checked.manifest is not None:
            kept += group
        elif len(group) > 1:
            waiting += _split(group, checked, payload, {place.pointer for place in tried if place.kind == "key"})
    return kept


def _split(
    group: list[Place], refused: pipeline.Result, payload: str, keys: Collection[tuple[payloads.Step, ...]]
) -> list[list[Place]]:
    """Parts of a group that was refused, the last of which is to be tried first.

    Each place that an error names is probably refused, and is tried alone if all are; the rest is likely to pass.
    """
    errors = [found.at for found in refused.diagnostics if found.severity == "error"]
    wrong = {at.pointer for at in errors if isinstance(at, diagnostics.Place)}

    def is_named(place: Place) -> bool:
        steps = enumerate(place.pointer, 1)
        return tuple(payload if place.pointer[:end] in keys else step for end, step in steps) in wrong

    named, others = [*filter(is_named, group)], [*itertools.filterfalse(is_named, group)]
    if named:
        return [*([place] for place in named if WHOLE), others]
    return [group[len(group) // 2 :], group[: len(group) // 2]]


Once: TypeAlias = Callable[[str, Callable[[Path], list[Place]]], list[Place]]


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    """Cached lists of places, computed once for all processes of a run."""
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    folder = write(tmp_path_factory.mktemp("settled"), {name: data.encode() for name, data in payloads.FILES.items()})

    def once(name: str, find: Callable[[Path], list[Place]]) -> list[Place]:
        known = shared / f"places-{hashlib.sha256(name.encode()).hexdigest()}.json"
        with known.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not known.exists():
                known.write_text(json.dumps([NUMBERS[place] for place in find(folder)]))
        return [PLACES[index] for index in json.loads(known.read_text())]

    return once


@pytest.fixture(scope="session")
def settle(once: Once) -> Settle:
    """As `settled`, for the payload of a name."""

    def settle(name: str, at: Sequence[Place]) -> list[Place]:
        about = json.dumps([name, [NUMBERS[place] for place in at]])
        return once(about, lambda folder: settled(folder, PAYLOADS[name], at))

    return settle


@pytest.fixture(scope="session")
def free(settle: Settle) -> list[Place]:
    """The places that take any text that people could read."""
    return settle("double quotes", PLACES)


@pytest.fixture(scope="session")
def taking(once: Once, free: list[Place]) -> Callable[[str], list[Place]]:
    """Those of the other places that take the payload of a name; the rest refuse it with a diagnostic.

    Of many, each payload is tried at one in twelve of them, and each of them with one in twelve payloads.
    """
    restricted = [place for place in PLACES if place not in free]
    step = choose(VARIABLE, 1, 12, 1)

    def taking(name: str) -> list[Place]:
        tried = restricted[[*PAYLOADS].index(name) % step :: step]
        return once(f"taking {name}", lambda folder: [place for place in tried if takes(folder, place, PAYLOADS[name])])

    return taking


def takes(folder: Path, place: Place, payload: str) -> bool:
    checked = check(folder, payloads.replace_texts(BASE, {place: payload}))
    assert checked.manifest is not None or checked.diagnostics
    assert all(found.message for found in checked.diagnostics)
    return checked.manifest is not None


def skeleton(text: str) -> Any:
    """A module's syntax without its constants and names, and without the order that comes from names."""
    return _shape(ast.parse(text))


def _shape(node: Any) -> Any:
    if isinstance(node, ast.Constant):
        return type(node.value).__name__
    assert not isinstance(node, ast.JoinedStr), "a value stands in an f-string"
    if isinstance(node, ast.AST):
        parts = [_shape(each) for name, each in ast.iter_fields(node) if isinstance(each, ast.AST | list)]
        return type(node).__name__, sorted(parts, key=repr)
    return sorted((_shape(each) for each in node if isinstance(each, ast.AST)), key=repr)


def assert_only_words_differ(one: Mapping[str, bytes], two: Mapping[str, bytes]) -> None:
    """Both packages have modules of the same syntax."""
    shapes = [
        sorted((skeleton(data.decode()) for path, data in files.items() if _is_ours(path)), key=repr)
        for files in (one, two)
    ]
    assert shapes[0] == shapes[1]


def assert_plain(files: Mapping[str, bytes]) -> None:
    """Check that all modules parse, and that f-strings have no payload."""
    for path, data in files.items():
        if _is_ours(path):
            skeleton(data.decode())


def _is_ours(path: str) -> bool:
    return path.endswith(".py")


_IMPORT = """
import json, os, pkgutil, importlib, sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
DANGEROUS = ("os.system", "os.exec", "os.fork", "os.remove", "subprocess.Popen", "socket.connect")
import mcp, mcp.server.lowlevel, mcp.client, pydantic, jsonschema_rs, starlette.applications, httpx2, uvicorn
armed = False
def watch(event, args):
    if armed and (event in DANGEROUS or (event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+"))):
        print("event", event, args, file=sys.stderr)
        os._exit(3)
sys.addaudithook(watch)
sys.dont_write_bytecode = True
known = {}
def compiled(self, data, path, **options):
    if data not in known:  # packages share their runtime
        known[data] = compile(data, path, "exec", dont_inherit=True)
    return known[data]
SourceFileLoader.source_to_code = compiled
for folder in sys.argv[1:]:
    sys.path.insert(0, folder)
    (name,) = [path.name for path in Path(folder).iterdir() if path.is_dir()]
    armed = True
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, name + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for wire, tool in package.TOOLS.items():
        tool.Input.model_json_schema()
        tool.definition
    armed = False
    sys.path.remove(folder)
    for loaded in [one for one in sys.modules if one.partition(".")[0] == name]:
        del sys.modules[loaded]
print("imported", len(sys.argv) - 1)
"""


def assert_imports_do_nothing(packages: list[Path]) -> None:
    """Each package, with all of its modules, can be imported, and does nothing then."""
    done = forked.python(["-c", _IMPORT, *map(str, packages)], packages[0])
    assert done.returncode == 0, done.stderr[-3000:]
    assert f"imported {len(packages)}" in done.stdout
    assert not [*packages[0].rglob(payloads.MARKER)]


def compiled(folder: Path, value: Any) -> dict[str, bytes]:
    return generated(check(folder, value))


def write(folder: Path, files: Mapping[str, bytes]) -> Path:
    for path, data in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return folder


GROUPS = [[*PAYLOADS][start::4] if WHOLE else [[*PAYLOADS][8 * start]] for start in range(4)]
"""All payloads in four tests, or a payload of each kind: quotes, ends of lines, templates and commands."""

FORMS = ("text", "github", "json")


@pytest.mark.parametrize("names", amounts.sample(GROUPS, 1))
def test_a_payload_everywhere_stays_text(
    names: list[str], folder: Path, free: list[Place], settle: Settle, taking: Callable[[str], list[Place]]
) -> None:
    packages: list[Path] = []
    harmless: dict[tuple[Place, ...], dict[str, bytes]] = {}
    for name in names:
        payload = PAYLOADS[name]
        kept = settle(name, free)
        if IS_ALL:  # only what takes both can be compared
            kept = settled(folder, HARMLESS, settled(folder, payload, [*kept, *taking(name)]))
        assert len(kept) > len(PLACES) / 2, name
        wanted = payloads.replace_texts(BASE, dict.fromkeys(kept, payload))
        files = compiled(folder, wanted)
        if (*kept,) not in harmless:
            harmless[*kept,] = compiled(folder, payloads.replace_texts(BASE, dict.fromkeys(kept, HARMLESS)))
        assert_only_words_differ(files, harmless[*kept,])
        (manifest,) = [json.loads(data) for path, data in files.items() if path.endswith("/manifest.json")]
        assert manifest["server"] == wanted["server"]
        schema = wanted["tools"][0]["inputSchema"]  # in which `auth` may bind the property that the payload is
        free_to_send = {key: each for key, each in schema["properties"].items() if key not in wanted["auth"]["bind"]}
        assert manifest["tools"][0]["inputSchema"] == {**schema, "properties": free_to_send}
        packages.append(write(folder / f"out{len(packages)}", files))
    assert_imports_do_nothing(packages)


@pytest.mark.parametrize("names", amounts.sample(GROUPS, 1))
def test_what_a_place_refuses_is_a_diagnostic_and_what_it_takes_is_text(
    names: list[str], folder: Path, free: list[Place], taking: Callable[[str], list[Place]]
) -> None:
    """Places that take some texts alone, such as names and URLs, each with one payload; all with all if whole."""
    if WHOLE:
        taken = [(place, PAYLOADS[name]) for name in names for place in taking(name)]
    else:
        restricted = [place for place in PLACES if place not in free]
        [payload] = [PAYLOADS[name] for name in names]
        mine = restricted[GROUPS.index(names) :: len(GROUPS)]
        taken = [(place, payload) for place in mine if takes(folder, place, payload)]
    packages: list[Path] = []
    for place, payload in taken:
        files = compiled(folder, payloads.replace_texts(BASE, {place: payload}))
        assert_plain(files)
        packages.append(write(folder / f"out{len(packages)}", files))
    if packages:
        assert_imports_do_nothing(packages)


@pytest.mark.parametrize(
    ("path", "says"),
    amounts.sample(
        [
            *[(f"specs/{payload}.yaml", "x +ACI-") for payload in PAYLOADS.values()],
            # PEP 263: the first two lines may name the encoding, in which a text is code. This text ends a docstring.
            ("a coding=utf_7 .yaml", f"x+ACIAIgAi-; {payloads.in_utf_7(payloads.RUN)}; +ACIAIgAi-y"),
            ("coding:utf7 .yaml", f"x+ACIAIgAi-; {payloads.in_utf_7(payloads.RUN)}; +ACIAIgAi-y"),
        ],
        10,
    ),
)
def test_a_path_of_a_manifest_says_nothing_to_python(path: str, says: str, folder: Path) -> None:
    schema = {"type": "object", "properties": {"q": {"type": "string", "description": says}}}
    value = {"stubwright": 1, "server": {"name": "x", "version": "1"}, "tools": [{"name": "t", "inputSchema": schema}]}
    (folder / "manifest.json").write_text(json.dumps(value))
    checked = pipeline.compile_manifest(str(folder / "manifest.json"), disk.Disk(), path)
    for name, data in generated(checked).items():
        if _is_ours(name):
            first, second, third, fourth = data.split(b"\n", 3)
            assert first.startswith(b"# Generated by stubwright from "), name
            assert second.startswith(b"# Regenerate with: "), name
            assert third == b"# fmt: off", name
            assert fourth[:1] != b"#", name
            assert ast.dump(ast.parse(data)) == ast.dump(ast.parse(data.decode())), name


def test_the_command_in_a_header_is_one_command(folder: Path) -> None:
    path = folder / "x; touch PWNED $(touch PWNED).json"
    path.write_text(json.dumps(BASE))
    assert cli.run(["generate", str(path), "-o", str(folder / "a b;c")]) == 0
    (made,) = (folder / "a b;c").glob("*/__init__.py")
    _, second, *_ = made.read_text().split("\n")
    again = shlex.split(second.removeprefix("# Regenerate with: "))
    assert again == ["stubwright", "generate", path.name, "-o", "a b;c"]


@pytest.mark.parametrize("names", amounts.sample(GROUPS, 1))
def test_pages_and_messages_show_a_payload_as_text(
    names: list[str],
    folder: Path,
    free: list[Place],
    settle: Settle,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)

    def say(*command: str) -> None:
        cli.run(command)
        printed = capsys.readouterr()
        unseen = [char for char in printed.out + printed.err if char in UNSEEN]
        assert not unseen, (command, unseen)

    def page(value: Any) -> pages.Page:
        Path("manifest.json").write_text(json.dumps(value))
        say("docs", "manifest.json", "-o", "pages")
        return pages.Page(next(Path("pages").glob("*.html")).read_text("utf-8"))

    harmless: dict[tuple[Place, ...], list[tuple[str, ...]]] = {}
    for index, name in enumerate(names):
        payload = PAYLOADS[name]
        kept = settle(name, free)
        hostile_page = page(payloads.replace_texts(BASE, dict.fromkeys(kept, payload)))
        if (*kept,) not in harmless:
            harmless[*kept,] = page(payloads.replace_texts(BASE, dict.fromkeys(kept, HARMLESS))).frame
        assert hostile_page.frame == harmless[*kept,], name
        assert hostile_page.unsafe() == [], name
        assert shown(payload) in hostile_page.text, name
        shutil.rmtree("pages")
        Path("old.json").write_text(json.dumps(BASE))
        for taken in (kept, PLACES):  # the latter is refused, with all that is wrong
            Path("manifest.json").write_text(json.dumps(payloads.replace_texts(BASE, dict.fromkeys(taken, payload))))
            for form in FORMS if WHOLE else FORMS[(GROUPS.index(names) + (taken is kept)) % 3 :][:1]:
                say("check", "manifest.json", "--format", form)
        Path("manifest.json").write_text(json.dumps(payloads.replace_texts(BASE, dict.fromkeys(kept, payload))))
        if IS_ALL or not index:  # the output of `check`, and paths
            say("generate", "manifest.json", "--check")
        for form in ("text", "md") if IS_ALL else (("text", "md")[index % 2],):
            say("diff", "old.json", "manifest.json", "--format", form)


def shown(payload: str) -> str:
    """Return a payload as a page shows it, with invisible characters by number."""
    return page_text(payload.encode("utf-8", "replace").decode())


_RANGES = (range(9), range(11, 32), range(127, 160), range(0x2028, 0x202F), range(0x2066, 0x206A))
UNSEEN = {chr(code) for codes in _RANGES for code in codes}
"""Characters that control a terminal, or the direction of its text."""


def listed(manifest: Any) -> dict[str, Any]:
    """What a server that a manifest describes answers, as MCP has it."""
    sections = {
        "tools/list": "tools",
        "resources/list": "resources",
        "resources/templates/list": "resourceTemplates",
        "prompts/list": "prompts",
    }
    answers: dict[str, Any] = {
        method: {section: [{k: v for k, v in entry.items() if k != "stubwright"} for entry in manifest[section]]}
        for method, section in sections.items()
    }
    for tool in answers["tools/list"]["tools"]:
        if "outputSchema" in tool:
            tool["outputSchema"] = {"type": "object", "properties": {"a": {"type": "string"}}}
    server = {key: value for key, value in manifest["server"].items() if key != "capabilities"}
    initialized = {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
        "serverInfo": server,
        "instructions": server.pop("instructions"),
    }
    return {"initialize": initialized, **answers}


@pytest.mark.parametrize("names", amounts.sample(GROUPS, 1))
def test_a_hostile_server_stays_text(names: list[str], folder: Path) -> None:
    """Import from a live process with a payload in each text that a server sends, including names."""
    mine = [
        place for place in PLACES if place.pointer[0] in ("server", *SECTIONS) and "stubwright" not in place.pointer
    ]
    packages: list[Path] = []
    for name in names:
        at = {place: PAYLOADS[name] for place in mine if place.rule[-1] in SAID}
        value = payloads.replace_texts(
            BASE, at | {place: PAYLOADS[name] for place in mine if place.pointer == ("server", "name")}
        )
        (folder / "script.json").write_text(json.dumps(listed(value)))
        server = [sys.executable, str(ROOT / "tests" / "support" / "scripted.py"), "script.json"]
        (folder / "imported.yaml").unlink(missing_ok=True)
        done = forked.run(["import", "mcp", "-o", "imported.yaml", "--", *server], folder)
        assert done.returncode == 0, (name, done.stderr)
        assert not UNSEEN & {*done.stdout, *done.stderr}, name
        checked = pipeline.compile_manifest(str(folder / "imported.yaml"), disk.Disk(), "imported.yaml")
        files = generated(checked)
        assert_plain(files)
        packages.append(write(folder / f"out{len(packages)}", files))
    assert_imports_do_nothing(packages)


@pytest.mark.parametrize("names", amounts.sample(GROUPS, 1))
def test_a_hostile_document_stays_text(names: list[str], folder: Path) -> None:
    """An OpenAPI document with a payload at every string and key that says something."""
    document = yaml.safe_load((ROOT / "tests" / "openapi" / "library.yaml").read_text("utf-8"))
    packages: list[Path] = []
    for name in names:
        (folder / "api.json").write_text(json.dumps(poisoned(document, PAYLOADS[name])))
        (folder / "imported.yaml").unlink(missing_ok=True)
        done = forked.run(["import", "openapi", "api.json", "-o", "imported.yaml"], folder)
        assert done.returncode == 0, (name, done.stderr)
        assert not UNSEEN & {*done.stdout, *done.stderr}, name
        checked = pipeline.compile_manifest(str(folder / "imported.yaml"), disk.Disk(), "imported.yaml")
        files = generated(checked)
        assert_plain(files)
        packages.append(write(folder / f"out{len(packages)}", files))
    assert_imports_do_nothing(packages)


def poisoned(value: Any, payload: str, key: str = "") -> Any:
    """A document with a payload in all that is meant for people, and in names that its author chose."""
    if isinstance(value, dict):
        return {
            (payload if key == "properties" and index == 0 else name): (
                each if key == "variables" else poisoned(each, payload, name)
            )
            for index, (name, each) in enumerate(value.items())
        }
    if isinstance(value, list):
        return [poisoned(each, payload, key) for each in value]
    return payload if isinstance(value, str) and key in _FOR_PEOPLE else value


_FOR_PEOPLE = {
    "title",
    "description",
    "summary",
    "version",
    "operationId",
    "tags",
    "example",
    "default",
    "enum",
    "termsOfService",
}

SECTIONS = ("tools", "resources", "resourceTemplates", "prompts")
SAID = {
    "title",
    "description",
    "instructions",
    "version",
    "mimeType",
    "{key}",
    "{}",
    "[]",
    "default",
    "const",
    "format",
    "name",
    "$comment",
}


# --- By construction ---

LITERALS = ("pycode.py", "codegen/source/literals.py", "codegen/typescript/source.py")


def test_layouts_of_code_are_constants_and_nothing_else_makes_code() -> None:
    """The arguments of `fill` and `join` are constants in stubwright's source; few other modules make code."""
    trusting = set()
    for path in sorted(SOURCES.rglob("*.py")):
        if "runtime" in path.relative_to(SOURCES).parts:
            continue
        name = path.relative_to(SOURCES).as_posix()
        text = path.read_text("utf-8")
        for node in ast.walk(ast.parse(text)) if "stubwright.pycode" in text or name == "pycode.py" else ():
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
                continue
            match node.func.id:
                case "fill" | "join" if name != "pycode.py":
                    assert is_constant(node.args[0]), f"{name}:{node.lineno}"
                case "Code":
                    assert name in LITERALS, f"{name}:{node.lineno}"
                case "trust":
                    trusting.add(name)
    assert trusting == {
        "codegen/models/datamodel.py",
        "codegen/models/inspection.py",
        "codegen/source/qualified_names.py",  # names of types, before which an alias is put that is a `Name`
        "codegen/source/render.py",
        "project/scaffold.py",
    }


def is_constant(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=str()):
            return True
        case ast.IfExp():
            return is_constant(node.body) and is_constant(node.orelse)
        case ast.Name(id=name):
            return name.isupper() or name in ("separator", "brackets")
        case _:
            return False


def test_templates_of_source_refuse_plain_text() -> None:
    environment = render.make_environment("package")
    assert environment.from_string("{{ one }}{{ one | literal }}").render(one=pycode.Name("x")) == 'x"x"'
    for template in (
        "{{ one }}",
        "{{ one ~ one }}",
        "{{ [one] | first }}",
        "{{ one | upper }}",
        "{{ '%s' | format(one) }}",
    ):
        with pytest.raises(TypeError, match="is not Python source"):
            environment.from_string(template).render(one="text")
    with pytest.raises(TypeError, match="is not Python source"):
        environment.from_string("{{ many | join(', ') }}").render(many=["text"])
    with pytest.raises(TypeError, match="is not Python source"):
        environment.from_string("{{ code('{}', one) }}").render(one="text")


def test_there_are_no_other_environments() -> None:
    makers = [
        path.relative_to(SOURCES).as_posix()
        for path in sorted(SOURCES.rglob("*.py"))
        if "jinja2" in (text := path.read_text("utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and node.attr in ("Environment", "Template")
        if isinstance(node.ctx, ast.Load) and ast.unparse(node.value) == "jinja2"
    ]
    assert {*makers} == {"codegen/source/render.py", "docs/page.py"}


@pytest.mark.parametrize("text", ["x y", "x.y()", "x;y", "", ".", "x\n", "1x", "x-y", "a..b", 'x"', "x\u2028"])
def test_a_name_is_nothing_but_names(text: str) -> None:
    with pytest.raises(ValueError, match="is not a Python name"):
        pycode.Name(text)


@pytest.mark.parametrize(
    "body",
    [
        "    print(1)",
        "    x: int = __import__('os').system('x')",
        "    x: __import__('os') = 1",
        "    x: list[open('x')] = 1",
        "    x: int = (lambda: eval('1'))()",
        "    x: int = [y for y in ()]",
        "    x: int = f'{1}'",
        "    def f(self): ...",
        "    import os",
        "    x = 1",
        "    x: int = a.b.model_validate(1)",
        "    x: 'print(1)'",
        "    x: Annotated[list['print(1)'] | None, Field(alias='z')] = None",
    ],
)
def test_classes_that_do_more_than_declare_are_refused(body: str) -> None:
    (written,) = ast.parse(
        f'class A(Model):\n    """Fine."""\n\n    y: Annotated[int, Field(alias="z")] = 1\n{body}\n'
    ).body
    assert isinstance(written, ast.ClassDef)
    with pytest.raises(ValueError, match="code that no model needs"):
        inspection.require_declarations(written)
