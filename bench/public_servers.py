"""Installs public servers from npm and PyPI, and isolates them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

INSTALLING = 240
"""Seconds to install a package."""

NO_NETWORK = ("unshare", "--net", "sh", "-c", 'ip link set lo up; exec "$@"', "sh")


class NotInstalledError(Exception):
    """A package cannot be installed."""


@dataclass(frozen=True, slots=True)
class Server:
    """A public server.

    Attributes:
        registry: The registry of its package, `npm` or `PyPI`.
        package: The package.
        version: Its version.
        arguments: The arguments on its command line.
        program: The program, if its name differs from the package's.
        writes: Whether to call tools without `readOnlyHint`; their effects stay in the server's folder.
        extra: Another PyPI requirement that it needs to start.
        deadline: Seconds for each response.
    """

    registry: str
    package: str
    version: str
    arguments: Sequence[str] = ()
    program: str = ""
    writes: bool = False
    extra: str = ""
    deadline: int = 10

    @property
    def command(self) -> str:
        """The command line that starts the server on any machine."""
        package = f"{self.package}@{self.version}"
        if self.registry == "npm":
            return " ".join(["npx -y", package, *self.arguments])
        options = f"--with '{self.extra}' " if self.extra else ""
        program = f"--from {package} {self.program}" if self.program else package
        return " ".join([f"uvx {options}{program}", *self.arguments])

    def install(self, folder: Path) -> Path:
        """Install it below a folder if necessary, and return its program. Raises NotInstalledError."""
        home = folder / f"{self.package.replace('/', '-')}-{self.version}"
        if self.registry == "npm":
            command = [
                "npm",
                "install",
                "--silent",
                "--no-audit",
                "--no-fund",
                "--ignore-scripts",
                "--prefix",
                str(home),
            ]
            steps = [[*command, f"{self.package}@{self.version}"]]
            programs = home / "node_modules" / ".bin"
        else:
            uv = shutil.which("uv") or str(Path(sys.prefix) / "uv" / "bin" / "uv")
            python = str(home / "bin" / "python")
            requirement = f"{self.package}=={self.version}"
            steps = [
                [uv, "venv", "--quiet", "--python", sys.executable, str(home)],
                [
                    uv,
                    "pip",
                    "install",
                    "--quiet",
                    "--python",
                    python,
                    requirement,
                    *([self.extra] if self.extra else []),
                ],
            ]
            programs = home / "bin"
        program = programs / (self.program or self.package.rpartition("/")[2])
        if not program.exists():
            home.mkdir(parents=True, exist_ok=True)
            for step in steps:
                run(step, INSTALLING)
        if not program.exists():
            raise NotInstalledError(
                f"no program {program.name}, but {sorted(path.name for path in programs.glob('*'))}"
            )
        return program


def furnish(home: Path) -> None:
    """Create the servers' data: a folder of notes and a git repository."""
    notes = home / "notes"
    notes.mkdir()
    (notes / "first.txt").write_text("one\ntwo\n")
    repository = home / "repository"
    git = ["git", "-C", str(repository), "-c", "user.name=Ada", "-c", "user.email=ada@example.com"]
    run(["git", "init", "--quiet", "--initial-branch", "main", str(repository)], 60)
    for number in ("one", "two"):
        (repository / "file.txt").write_text(f"{number}\n")
        run([*git, "add", "."], 60)
        run([*git, "commit", "--quiet", "--message", number], 60)


def find_isolation() -> Sequence[str]:
    """Return the command prefix that removes the network, or an empty list where that is not allowed."""
    is_able = shutil.which("unshare") and subprocess.run([*NO_NETWORK, "true"], capture_output=True).returncode == 0
    return NO_NETWORK if is_able else ()


def run(command: Sequence[str], seconds: float, home: Path | None = None, statuses: Sequence[int] = (0,)) -> str:
    """Run a command and return its output. Raises NotInstalledError if it fails or exceeds its deadline."""
    variables = make_variables(home) if home else dict(os.environ)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, cwd=home, env=variables)
    except subprocess.TimeoutExpired:
        raise NotInstalledError(f"{command[0]} took more than {seconds:g} s") from None
    if done.returncode not in statuses:
        raise NotInstalledError(f"{command[0]} ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    return done.stdout


def make_variables(home: Path) -> dict[str, str]:
    """Return the environment variables for a process with a separate home."""
    return {"PATH": os.environ["PATH"], "HOME": str(home)}
