"""Creates a server project in a new or empty folder."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from stubwright import __version__, naming, package_data
from stubwright.codegen import surface
from stubwright.codegen.source import render
from stubwright.codegen.source.literals import format_comment, format_literal
from stubwright.compile import pipeline
from stubwright.compile.syntax import yamlwriter
from stubwright.project import build, migration, wheels
from stubwright.project.files import disk, lock, tree
from stubwright.project.handwritten import handlers as handwritten
from stubwright.project.variables import Variable, list_variables
from stubwright.pycode import Code, Name, fill, join, trust

if TYPE_CHECKING:
    from stubwright.codegen.surface import HandlerMethod
    from stubwright.project.migration import PythonServer

IS_PUBLISHED: Final = False
"""True if `stubwright-runtime` is on package indexes. Until the first release, anyone could register that name, so new
projects contain the wheel and never fetch it from an index."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_. ][A-Za-z0-9]+)*")


class ScaffoldError(Exception):
    """The project cannot be created; the message explains why and suggests a remedy."""


@dataclass(frozen=True, slots=True)
class Origin:
    """A project's starting point.

    Attributes:
        fragment: An imported manifest without its `server`.
        server: The imported manifest's `server`.
        again: The `stubwright import` arguments that repeat the import in the project folder.
        is_repeatable: True if `stubwright refresh` may repeat the import because it starts no program.
        old: The server object to migrate; None if the user must write the methods.
    """

    fragment: Mapping[str, Any]
    server: Mapping[str, Any]
    again: str
    is_repeatable: bool = False
    old: PythonServer | None = None


class NameRefusedError(ScaffoldError):
    """The server name is invalid."""


def create(
    name: str,
    folder: Path | None = None,
    origin: Callable[[], Origin] | None = None,
    *,
    is_published: bool = IS_PUBLISHED,
) -> str:
    """Create a project and return the next steps to print.

    Args:
        name: The server's name: letters and digits, with single `-`, `_`, `.` or spaces between them.
        folder: The folder; by default a new folder with the server's name in the working folder.
        origin: Returns a starting point that replaces the example; called after the other checks.
        is_published: True if installers can fetch the runtime from a package index; otherwise the project contains
            its wheel.

    Raises:
        NameRefusedError: The name is invalid.
        ScaffoldError: The folder is not empty or cannot be written.
        Exception: An exception from `origin`.
    """
    if not _NAME.fullmatch(name) or len(name) > 60:
        raise NameRefusedError(
            f"`{name}` is not a valid server name: start with a letter, and use up to 60 letters and digits, with "
            "single spaces, `-`, `_` or `.` between them"
        )
    target = find_folder(name, folder)
    slug = _make_slug(name)
    try:
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise ScaffoldError(f"`{target}` already exists: choose another folder with --dir")
        wheel = None if is_published else _pack_runtime()
        start = origin() if origin is not None else None
        staged = _fill(name, slug, target, start, wheel)
        try:
            _copy(staged, target.resolve())  # keeps a link to an empty folder
        finally:
            shutil.rmtree(staged, ignore_errors=True)
    except OSError as error:
        raise ScaffoldError(
            f"cannot write `{error.filename2 or error.filename or target}`: {error.strerror or error}"
        ) from error
    steps = _next_steps(target, slug, "specs/imported" if origin is not None else "specs", wheel)
    return steps + (start.old.describe_next_steps() if start is not None and start.old is not None else "")


def find_folder(name: str, folder: Path | None) -> Path:
    """Return the project folder: `folder`, or a new folder with the server's name."""
    return folder if folder is not None else Path(_make_slug(name))


def _copy(staged: Path, place: Path) -> None:
    """Copy a project into a folder; if this fails, delete the copies.

    Raises:
        OSError: A file cannot be written, or has appeared in the meantime.
    """
    copies = [] if place.exists() else [place]
    place.mkdir(parents=True, exist_ok=True)
    try:
        for path in sorted(staged.rglob("*")):  # a rename would fail across disks
            copy = place / path.relative_to(staged)
            copy.mkdir() if path.is_dir() else copy.touch(exist_ok=False)
            copies.append(copy)
            if path.is_file():
                shutil.copy(path, copy)
    except BaseException:
        for copy in reversed(copies):
            if copy.is_dir():
                with suppress(OSError):  # another program has written to the folder
                    copy.rmdir()
            else:
                copy.unlink(missing_ok=True)
        raise


def _make_slug(name: str) -> str:
    return "-".join(word.lower() for word in naming.split_words(name))


def _pack_runtime() -> wheels.Wheel:
    try:
        return wheels.pack_runtime()
    except PackageNotFoundError:
        raise ScaffoldError(
            f"{wheels.RUNTIME} is not installed, so its wheel cannot be built: install it, or pass "
            "--from-index if your package index has it"
        ) from None


def _fill(name: str, slug: str, target: Path, origin: Origin | None, wheel: wheels.Wheel | None) -> Path:
    """Create the project in a temporary folder. `target` is the final path of the project."""
    stem = naming.name_server_stem(name)
    module = naming.name_handwritten_module(name)
    client = naming.name_client_class(stem)
    values: dict[str, Any] = {
        "name": trust(name),  # `_NAME` allows only letters, digits, spaces, `-`, `_` and `.`
        "file": trust(f"{slug}.yaml"),
        "distribution": trust(_distribution(slug)),
        "package": naming.name_package(name),
        "client": client,
        "interface": naming.name_handlers_class(stem),
        "handlers": naming.name_handwritten_class(stem),
        "handwritten": module,
        "calls": False,
        "variables": [],
        "moved": False,
        "wheel": None if wheel is None else trust(wheel.name),
        "wheel_path": None if wheel is None else trust(wheels.find_shared(wheel, target)),
    }
    used = [*sorted([Name("ToolFailed"), client]), Name("build_server")]
    exported = used if origin is None else [Name("TOOLS"), client, Name("build_server"), Name("list_tools")]
    own = fill("from {}.handlers import {}", module, values["handlers"])
    values["imports"] = sorted([own, fill("from {} import {}", values["package"], join(", ", exported))])
    values["handler_imports"] = sorted(
        [*map(Name, ("Context", "RollDiceInput", "RollDiceOutput", "ToolError")), values["interface"]]
    )
    files = {
        "README.md": "README.md",
        **({} if wheel is None else {"wheels/README.md": "wheels.md"}),
        "mcp.json": "mcp.json",
        "Dockerfile": "Dockerfile",
        ".dockerignore": "dockerignore",
        ".gitignore": "gitignore",
        ".gitattributes": "gitattributes",
        f"specs/{slug}.yaml": "manifest.yaml",
        f"{module}/__init__.py": "init.py",
        f"{module}/handlers.py": "handlers.py",
        "tests/test_tools.py": "test_tools.py",
    }
    templates = render.make_environment("new")
    templates.filters |= {"json": _json, "quoted": _quote_code}
    old = origin.old if origin is not None else None
    if old is not None:
        for taken in sorted(old.loaded.intersection((module, values["package"]))):
            raise ScaffoldError(
                f"`{old.file.name}` imports or is `{taken}`, which is also a package of the new server: choose "
                "another NAME"
            )
        values |= {"moved": True, **old.list_values(target)}
        files[f"{module}/old.py"] = "old.py"
    staged = Path(tempfile.mkdtemp(prefix="stubwright-"))
    if origin is not None:
        del files[f"specs/{slug}.yaml"]
        values |= _start_from(origin, staged, values)
        files |= {f"{module}/handlers.py": "handlers_from.py", "tests/test_tools.py": "test_from.py"}

    def write(path: str, template: str) -> None:
        file = staged / path
        file.parent.mkdir(parents=True, exist_ok=True)
        text = trust(templates.get_template(f"{template}.jinja").render(values))
        file.write_text(render.format_python(text) if path.endswith(".py") else text, "utf-8", newline="\n")

    for path, template in files.items():
        write(path, template)
    if wheel is not None:
        (staged / "wheels" / wheel.name).write_bytes(wheel.data)
    schema = package_data.MANIFEST_SCHEMA.read_bytes()
    (staged / "specs" / "stubwright.schema.json").write_bytes(schema)
    needed = [old.requirement] if old is not None and old.requirement else []
    values["requirements"] = [*_compile(staged, f"specs/{slug}.yaml"), *needed]
    write("pyproject.toml", "pyproject.toml")
    return staged


def _start_from(origin: Origin, folder: Path, values: Mapping[str, Any]) -> dict[str, Any]:
    """Write the manifests for a project with an origin. Return the template values for the project's handlers."""
    imported = f"imported/{values['file']}"
    server = {**origin.server, "name": values["name"], "version": "0.1.0"}
    if origin.old is not None and origin.old.logs:
        server["capabilities"] = {**server.get("capabilities", {}), "logging": True}
    own = {
        "stubwright": 1,
        "server": server,
        "python": {"package": values["package"], "handlers": f"{values['handwritten']}.handlers:{values['handlers']}"},
        "include": [imported],
    }
    manifest = folder / "specs" / values["file"]
    (folder / "specs" / "imported").mkdir(parents=True)
    command = f"stubwright import {origin.again} --fragment -o specs/{imported}"
    again = format_comment(f"imported with: {'stubwright refresh' if origin.is_repeatable else command}")
    manifest.write_text(
        _MANIFEST.format(imported=imported, again=again) + yamlwriter.format_manifest(own), "utf-8", newline="\n"
    )
    text = yamlwriter.format_imported(origin.fragment, command=command if origin.is_repeatable else None)
    (folder / "specs" / imported).write_text(text, "utf-8", newline="\n")
    checked = pipeline.compile_manifest(manifest.as_posix(), disk.Disk())
    if checked.manifest is None:
        raise ScaffoldError(f"the imported manifest is invalid: {checked.diagnostics[0].message}")
    methods = [method for method in surface.list_handler_methods(checked.manifest) if not method.is_optional]
    nothing = handwritten.HandwrittenClass("", "", "", "")
    used = {values["interface"], *handwritten.list_names_to_import(nothing, methods)}
    bodies = [_body(method) if origin.old is None else migration.make_body(method, origin.old) for method in methods]
    return {
        "calls": checked.manifest.calls,
        "variables": _describe_variables(checked.manifest.document),
        "handler_imports": [*map(Name, sorted(used.union(*(body.names for body in bodies))))],
        "methods": [
            {
                "signature": fill("async def {}({}) -> {}:", method.name, method.signature, body.result),
                "statement": body.statement,
                "comments": body.comments,
            }
            for method, body in zip(methods, bodies, strict=True)
        ],
    }


def _body(method: HandlerMethod) -> migration.Body:
    """Return a method body that raises an error until the user writes it."""
    if method.role != "tool":
        return migration.Body(method.result.text, fill("raise NotImplementedError"))
    refusal = fill("raise ToolError({})", format_literal(f"{method.name} has not been written yet"))
    return migration.Body(method.result.text, refusal, names=frozenset({"ToolError"}))


def _json(value: str) -> Code:
    # YAML, TOML and Python parse a JSON string to the same value.
    return trust(json.dumps(value))


def _quote_code(text: str) -> Code:
    """Format text as inline Markdown code, on one line."""
    return trust(f"`{''.join(char if char.isprintable() and char != '`' else '?' for char in text)}`")


def _describe_variables(document: Mapping[str, Any]) -> list[tuple[Code, Code]]:
    return [(_quote_code(variable.name), _describe_variable(variable)) for variable in list_variables(document)]


def _describe_variable(variable: Variable) -> Code:
    owner = _quote_code(variable.owner)
    match variable.kind:
        case "address":
            default = variable.default
            there = fill(", by default {}", _quote_code(default)) if default else fill("; it must be set")
            return fill("where {} is{}", owner, there)
        case "part":
            default = variable.default or ""
            return fill("{} in the URL of {}, by default {}", _quote_code(variable.what), owner, _quote_code(default))
        case "credential":
            return fill("the {} for {}", trust(variable.what), owner)
        case "argument":
            return fill("{} of {}, for the local user", _quote_code(variable.what), owner)


_MANIFEST = """# The server's manifest. After a change, run: stubwright generate
# Its tools were imported into {imported}. Put additions to them here, under `overlay`, so that they can be
{again}
# yaml-language-server: $schema=./stubwright.schema.json
"""


def _compile(folder: Path, manifest: str) -> tuple[str, ...]:
    """Compile the manifest as `stubwright generate` would in the project. Return the package's requirements."""
    target = build.Target(folder / build.OUTPUT)
    built = build.build((folder / manifest).as_posix(), target, lock.Lock(__version__), trust=False)
    if built.changes is None:
        raise AssertionError(f"the manifest of a new project is invalid: {built.diagnostics}")
    tree.apply(target.folder, built.changes)
    return built.requirements


def _distribution(slug: str) -> str:
    """Return the name for the project's distribution and command: the package name, which is never the SDK's."""
    return naming.name_package(slug).replace("_", "-")


def _next_steps(target: Path, slug: str, tools: str, wheel: wheels.Wheel | None) -> str:
    script = f".venv/bin/{_distribution(slug)}"
    served = f"{script} --http 127.0.0.1:8000"
    runtime = "" if wheel is None else f"wheels/{wheel.name} "
    return f"""Created {target}.

Next:
  cd {shlex.quote(str(target))}
  {"stubwright dev".ljust(len(served))}  # serves on http://127.0.0.1:8000/mcp, and restarts after each save

To test it, and to run it without stubwright:
  python3 -m venv .venv
  .venv/bin/pip install {runtime}-e . pytest
  .venv/bin/pytest
  {script.ljust(len(served))}  # serves on stdio
  {served}  # serves on http://127.0.0.1:8000/mcp

The tools are in {tools}/{slug}.yaml; after a change, run `stubwright generate`, unless `stubwright dev` runs.
"""
