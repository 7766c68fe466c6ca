"""`toolwright new`: a server project that runs at once.

Takes a name; writes a folder with a manifest, handlers, tests and packaging, and compiles the manifest into it.
It never writes into a folder that holds anything.
"""

from __future__ import annotations

import json
import keyword
import re
import shlex
import shutil
import tempfile
from pathlib import Path
from typing import Any

import jinja2

from toolwright import __version__, build, compiler, lock, naming, render, workspace

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_. ][A-Za-z0-9]+)*")


class ScaffoldError(Exception):
    """The project cannot be made; the text says why and what to do."""


class NameRefusedError(ScaffoldError):
    """No server can have that name."""


def create(name: str, folder: Path | None = None) -> str:
    """Make a project and give the next steps to print.

    Args:
        name: The server's name: letters and digits, with single `-`, `_`, `.` or spaces between them.
        folder: Where to; by default a new folder with the server's name in the working folder.

    Raises:
        NameRefusedError: The name cannot be used.
        ScaffoldError: The folder is not empty, or cannot be written.
    """
    if not _NAME.fullmatch(name) or len(name) > 60:
        raise NameRefusedError(
            f"`{name}` cannot name a server: start with a letter, and use up to 60 letters and digits, with single "
            "spaces, `-`, `_` or `.` between them"
        )
    slug = "-".join(word.lower() for word in naming.words(name))
    target = folder if folder is not None else Path(slug)
    try:
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise ScaffoldError(f"`{target}` is there already: choose another folder with --dir")
        made = _fill(name, slug)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.exists():
                target.rmdir()
            shutil.move(made, target)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    except OSError as error:
        raise ScaffoldError(f"cannot write `{error.filename or target}`: {error.strerror or error}") from error
    return _next_steps(target, slug)


def _fill(name: str, slug: str) -> Path:
    """Make the whole project in a temporary folder."""
    stem = naming.server_stem(name)
    handwritten = f"{slug.replace('-', '_')}_server"
    values: dict[str, Any] = {
        "name": name,
        "file": f"{slug}.yaml",
        "distribution": _distribution(slug),
        "package": naming.package(name),
        "stem": stem,
        "handlers": f"{stem}Server" if keyword.iskeyword(stem) or stem.startswith("Test") else stem,
        "handwritten": handwritten,
        "requirements": compiler.REQUIREMENTS,
    }
    exported = ", ".join([*sorted(["ToolFailed", f"{stem}Client"]), "build_server"])
    own = f"from {handwritten}.handlers import {values['handlers']}"
    values["imports"] = sorted([own, f"from {values['package']} import {exported}"])
    files = {
        "pyproject.toml": "pyproject.toml",
        "README.md": "README.md",
        "mcp.json": "mcp.json",
        ".gitignore": "gitignore",
        ".gitattributes": "gitattributes",
        f"specs/{slug}.yaml": "manifest.yaml",
        f"{handwritten}/__init__.py": "init.py",
        f"{handwritten}/handlers.py": "handlers.py",
        "tests/test_tools.py": "test_tools.py",
    }
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(render.templates() / "new"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - no HTML, and the name was checked
    )
    templates.filters["json"] = json.dumps
    made = Path(tempfile.mkdtemp(prefix="toolwright-"))
    for path, template in files.items():
        file = made / path
        file.parent.mkdir(parents=True, exist_ok=True)
        text = templates.get_template(f"{template}.jinja").render(values)
        file.write_text(render.python(text) if path.endswith(".py") else text, "utf-8")
    schema = Path(__file__).with_name("manifest.schema.json").read_bytes()
    (made / "specs" / "toolwright.schema.json").write_bytes(schema)
    _compile(made, f"specs/{slug}.yaml")
    made.chmod(0o755)
    return made


def _compile(folder: Path, manifest: str) -> None:
    """Compile the manifest into the project, as `toolwright generate` in it would."""
    target = build.Target(folder / build.OUTPUT)
    built = build.build(str(folder / manifest), target, lock.Lock(__version__), trust=False)
    if built.changes is None:
        raise AssertionError(f"the manifest of a new project is wrong: {built.diagnostics}")
    workspace.apply(target.folder, built.changes)


def _distribution(slug: str) -> str:
    """The project's name for installers, and its command: like the package's, and never the SDK's own."""
    return naming.package(slug).replace("_", "-")


def _next_steps(target: Path, slug: str) -> str:
    script = f".venv/bin/{_distribution(slug)}"
    served = f"{script} --http 127.0.0.1:8000"
    return f"""Made {target}.

Next:
  cd {shlex.quote(str(target))}
  python3 -m venv .venv
  .venv/bin/pip install -e . pytest
  .venv/bin/pytest
  {script.ljust(len(served))}  # serves on stdio
  {served}  # serves on http://127.0.0.1:8000/mcp

The tools are in specs/{slug}.yaml; after a change, run `toolwright generate`.
"""
