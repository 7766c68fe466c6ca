"""The command line from the user's perspective."""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

import amounts
import forked
from command_line import stubwright
from stubwright import cli
from stubwright.commands import GROUPS, VERBS
from stubwright.commands.shared import console
from stubwright.diagnostics import CODES
from stubwright.diff.changes import CODES as CHANGES

ROOT = Path(__file__).parents[2]
HEAVY = ("mcp", "datamodel_code_generator", "black")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "specs").mkdir()
    for name in ("weather.yaml", "weather.md"):
        shutil.copy(ROOT / "specs" / name, tmp_path / "specs")
    shutil.copy(ROOT / "examples" / "weather.py", tmp_path)
    shutil.copy(ROOT / "examples" / "weather.py", tmp_path / "specs")
    return tmp_path


def test_help_names_each_command(tmp_path: Path) -> None:
    done = stubwright("--help", cwd=tmp_path)
    assert done.returncode == 0
    for verb in VERBS:
        assert len(re.findall(rf"^  {verb} ", done.stdout, re.MULTILINE)) == 1, verb
    assert re.findall(r"^(\w+):$", done.stdout, re.MULTILINE) == ["options", *GROUPS]
    assert max(map(len, done.stdout.splitlines())) <= 88


@pytest.mark.parametrize("argv", [[], ["frobnicate"], ["check", "--format", "xml"], ["import"]])
def test_a_wrong_command_line_exits_2(argv: list[str], tmp_path: Path) -> None:
    done = stubwright(*argv, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("stubwright" if argv else "usage: stubwright")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_is_declared_by_the_module_that_is_listed_for_it(verb: str) -> None:
    shown = [action for action in cli._parser([verb])._actions if isinstance(action, argparse._SubParsersAction)]
    assert [choice.dest for action in shown for choice in action._choices_actions] == [verb]


def test_a_command_loads_no_other_one(project: Path) -> None:
    code = "import sys; from stubwright import cli; cli.run(['schema']); print(*sorted(sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], cwd=project, capture_output=True, text=True, check=True)
    others = {f"stubwright.commands.{module}" for module in VERBS.values()} & {*done.stderr.split()}
    assert others == {"stubwright.commands.schema"}


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("chekc", "stubwright: there is no command `chekc`; did you mean `check`?"),
        (
            "frobnicate",
            "stubwright: there is no command `frobnicate`; the commands are `new`, `check`, `generate`, `dev`",
        ),
        ("check --fromat json", "stubwright check: there is no option `--fromat`; did you mean `--format`?"),
        ("call a.yaml get --formt json", "stubwright call: there is no option `--formt`; did you mean `--format`?"),
        ("list npx -y x", "stubwright list: unrecognized arguments: -y x; put `--` before a command, as in: "),
        ("list npx --from=x", "stubwright list: unrecognized arguments: --from=x; put `--` before a command"),
        ("check a.yaml --watch", "stubwright check: there is no option `--watch`; see `stubwright check --help`"),
        ("check --format jsn", "stubwright check: `jsn` is not a valid value for `--format`; did you mean `json`?"),
        (
            "check --format xml",
            "stubwright check: `xml` is not a valid value for `--format`; the values are `text`, `json`",
        ),
        ("import", "stubwright import: name `KIND`, as in: stubwright import openapi api.json -o specs/api.yaml"),
        ("explain", "stubwright explain: name `CODE`, as in: stubwright explain SW203"),
        ("docs", "stubwright docs: name `--output`, as in: stubwright docs specs/weather.yaml -o site"),
        ("check --target", "stubwright check: `--target` requires a value; see `stubwright check --help`"),
        ("new x --from", "stubwright new: `--from` requires a value; see `stubwright new --help`"),
        (
            "mock a.yaml --seed x",
            "stubwright mock: `x` is not a number, as `--seed` requires; see `stubwright mock --help`",
        ),
        ("--json list", "stubwright: there is no option `--json`; put a command's options after its name"),
        ("--verison", "stubwright: there is no option `--verison`; did you mean `--version`?"),
        ("help", "stubwright: there is no command `help`; did you mean `--help`?"),
        ("call a.yaml get --place x", "stubwright call: there is no option `--place`; write arguments as NAME=VALUE"),
        ("record http://h/mcp --timeout 1", "stubwright record: there is no option `--timeout`; see "),
        ("call http:/h/mcp x", "stubwright: `http:/h/mcp` is not a URL; did you mean `http://h/mcp`?"),
        (
            "call localhost:8000/mcp x",
            "stubwright: `localhost:8000/mcp` is not a URL; did you mean `http://localhost:80",
        ),
        ("explain minLength", "stubwright: there is no code `minLength`; the codes are `SW001`"),
        ("list htp://x", "stubwright: `htp://x` is not an http or https URL"),
        (
            "publish a.yaml",
            "stubwright: publish requires a project: no pyproject.toml has [tool.stubwright]; `stubwright new",
        ),
        ("explain SW9", "stubwright: there is no code `SW9`; did you mean `SW590`?"),
    ],
)
def test_a_mistake_gets_one_line(words: str, line: str, tmp_path: Path) -> None:
    done = stubwright(*words.split(), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(line)
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("verb", ["check", "list", "dev"])
def test_a_misspelt_manifest_gets_a_suggestion(verb: str, tmp_path: Path) -> None:
    (tmp_path / "travel.yaml").write_text("")
    done = stubwright(verb, "traval.yaml", cwd=tmp_path)
    assert (done.returncode, done.stderr.splitlines()[1]) == (1, "   help: did you mean `travel.yaml`?")


def test_no_word_of_a_command_line_colours_the_terminal(tmp_path: Path) -> None:
    for words in (["\x1b[31mx"], ["check", "--\x1b[31mx"], ["check", "--format", "\x1b[31mx"]):
        assert "\x1b" not in stubwright(*words, cwd=tmp_path).stderr


@pytest.mark.parametrize("verb", [*VERBS, "import mcp", "import tools", "import openapi"])
def test_help_ends_with_exit_statuses_and_an_example(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.run([*verb.split(), "--help"])
    _, statuses, examples = re.split(r"^(?:exit status|examples?):\n", capsys.readouterr().out, flags=re.MULTILINE)
    assert re.match(r"  (0 \w|the command's exit status)", statuses), statuses
    assert ", 2 " in statuses.replace("\n ", "")
    if verb != "record":  # it has the status of its command
        assert re.search(r"interrupted|stopped", statuses), statuses
    assert all(line.startswith(f"  stubwright {verb}") for line in examples.splitlines()), examples


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    for code in [*CODES, *CHANGES]:
        assert cli.run(["explain", code.lower()]) == 0
        title, rest = capsys.readouterr().out.split("\n\n")
        meaning = CODES[code].meaning if code in CODES else CHANGES[code][1]
        assert title.startswith(f"{code} (")
        assert title.endswith(meaning), code
        is_error = code in CODES and CODES[code].severity == "error"
        assert (f"[{code}]" in rest) != is_error, code
    assert cli.run(["explain", "sw203", "--json"]) == 0
    explained = json.loads(capsys.readouterr().out)
    assert (explained["code"], explained["kind"], explained["meaning"]) == ("SW203", "error", CODES["SW203"].meaning)


def test_every_command_that_reports_something_has_json() -> None:
    """The others only write files, or print a document for other programs, or serve."""
    [parsers] = [action.choices for action in cli._parser()._actions if isinstance(action, argparse._SubParsersAction)]
    without = {verb for verb in VERBS if "--json" not in parsers[verb].format_help()}
    documents, servers = {"export", "schema", "completion"}, {"dev", "mock", "record", "replay"}
    assert without == {"new", "import", "wheels"} | documents | servers


@pytest.mark.parametrize("verb", ["check", "generate"])
def test_without_a_manifest_and_a_project_exits_2(verb: str, tmp_path: Path) -> None:
    done = stubwright(verb, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == (
        "stubwright: no manifest is given, and no pyproject.toml here or above has [tool.stubwright]; "
        "specify one, such as specs/weather.yaml, or start with `stubwright new NAME`\n"
    )


def test_generate_writes_once(project: Path) -> None:
    first = stubwright("generate", "specs/weather.yaml", cwd=project)
    assert first.returncode == 0, first.stderr
    assert re.match(r"generated/weather_mcp: \d+ files written\n  it needs stubwright-runtime\n", first.stdout)
    times = {path: path.stat().st_mtime_ns for path in project.rglob("*") if path.is_file()}
    second = stubwright("generate", "specs/weather.yaml", cwd=project)
    assert (second.returncode, second.stdout) == (0, "specs/weather.yaml: up to date\n")
    assert {path: path.stat().st_mtime_ns for path in project.rglob("*") if path.is_file()} == times


def test_what_a_package_needs_is_told_when_it_changes(project: Path) -> None:
    manifest = project / "specs" / "weather.yaml"
    assert "it needs" not in stubwright("generate", "-q", str(manifest), cwd=project).stdout
    manifest.write_text(manifest.read_text().replace("version: 1.0.0", "version: 1.0.1"))
    again = stubwright("generate", "specs/weather.yaml", cwd=project)
    assert re.fullmatch(r"generated/weather_mcp: 1 file written, \d+ files unchanged\n", again.stdout)


SERVER = """\
stubwright: 1
server: {name: %s, version: 1.0.0}
tools: [{name: ask, description: Asks., inputSchema: {type: object}}]
"""


def test_a_package_whose_name_changes_moves_as_a_whole(tmp_path: Path) -> None:
    long = tmp_path / "airtable.yaml"
    long.write_text(SERVER % "airtable-mcp-server" + "python: {package: airtable_mcp_server_mcp}\n")
    assert stubwright("generate", "airtable.yaml", cwd=tmp_path).returncode == 0
    (tmp_path / "old.yaml").write_text(long.read_text())
    long.write_text(SERVER % "airtable-mcp-server")
    done = stubwright("generate", "airtable.yaml", cwd=tmp_path)
    assert re.match(r"generated/airtable_mcp: \d+ files written, \d+ files removed\n  it needs ", done.stdout)
    made = {path.name for path in (tmp_path / "generated").iterdir()}
    assert made == {"airtable_mcp", "stubwright.lock.json"}
    assert "class AirtableClient" in (tmp_path / "generated" / "airtable_mcp" / "client.py").read_text()
    assert stubwright("generate", "--check", "airtable.yaml", cwd=tmp_path).returncode == 0
    changed = stubwright("diff", "old.yaml", "airtable.yaml", cwd=tmp_path)
    assert "the package changed from `airtable_mcp_server_mcp` to `airtable_mcp`" in changed.stdout
    assert stubwright("diff", "airtable.yaml", "airtable.yaml", cwd=tmp_path).returncode == 0


def test_a_package_that_another_manifest_makes_is_not_taken_from_it(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(SERVER % "airtable")
    (tmp_path / "two.yaml").write_text(SERVER % "airtable-mcp-server")
    done = stubwright("generate", "one.yaml", "two.yaml", cwd=tmp_path)
    assert done.returncode == 1
    assert "two.yaml:2:16: error[SW401]: `generated/airtable_mcp/__init__.py` is already generated from `one.yaml`" in (
        done.stderr
    )
    assert "different `python.package`" in done.stderr
    with (tmp_path / "two.yaml").open("a") as file:
        file.write("python: {package: airtable_mcp_server}\n")
    done = stubwright("generate", "one.yaml", "two.yaml", cwd=tmp_path)
    assert done.returncode == 0
    assert (tmp_path / "generated" / "airtable_mcp_server" / "client.py").is_file()


CALL = """\
apis:
  it: {baseUrl: "https://example.com"}
tools:
  - name: get_it
    description: Gets it.
    inputSchema: {type: object}
    stubwright: {http: {api: it, url: /it}}
"""


def test_generate_check_shows_the_difference(project: Path) -> None:
    stubwright("generate", "specs/weather.yaml", cwd=project)
    assert stubwright("generate", "--check", "specs/weather.yaml", cwd=project).returncode == 0
    manifest = project / "specs/weather.yaml"
    manifest.write_text(manifest.read_text().replace("Get a daily forecast", "Tell the weather"))
    before = (project / "generated/weather_mcp/client.py").read_text()
    done = stubwright("generate", "--check", "specs/weather.yaml", cwd=project)
    assert done.returncode == 1
    assert "--- a/generated/weather_mcp/client.py" in done.stdout
    assert '+        """Tell the weather for a location, for up to a week.' in done.stdout
    assert (project / "generated/weather_mcp/client.py").read_text() == before


@pytest.mark.long
def test_a_lost_lock_is_mended_by_force(project: Path) -> None:
    stubwright("generate", "specs/weather.yaml", cwd=project)
    (project / "generated/stubwright.lock.json").unlink()
    manifest = project / "specs/weather.yaml"
    manifest.write_text(manifest.read_text().replace("Get a daily forecast", "Tell the weather"))
    refused = stubwright("generate", "specs/weather.yaml", cwd=project)
    assert refused.returncode == 1
    assert "generated/weather_mcp/manifest.json:1:1: error[SW402]: this generated file was edited" in refused.stderr
    assert stubwright("generate", "specs/weather.yaml", "--force", cwd=project).returncode == 0
    assert stubwright("generate", "--check", "specs/weather.yaml", cwd=project).returncode == 0


def test_a_lock_that_is_lost_or_lists_too_little_is_stale(project: Path) -> None:
    stubwright("generate", "specs/weather.yaml", cwd=project)
    lock = project / "generated/stubwright.lock.json"
    whole = lock.read_text()
    for text, state, option in (
        ("", "is missing", "-q"),
        (re.sub(r".*models/get_forecast.*\n", "", whole), "does not match the generated files", "--force"),
    ):
        lock.write_text(text) if text else lock.unlink()
        done = stubwright("generate", "--check", "specs/weather.yaml", cwd=project)
        assert done.returncode == 1
        assert f"generated/stubwright.lock.json:1:1: error[SW407]: this file {state}" in done.stderr
        assert stubwright("generate", "specs/weather.yaml", option, cwd=project).returncode == 0
        assert lock.read_text() == whole
        assert stubwright("generate", "--check", "specs/weather.yaml", cwd=project).returncode == 0


@pytest.mark.long
def test_runs_at_the_same_time_wait_for_each_other(project: Path) -> None:
    text = (project / "specs/weather.yaml").read_text()
    names = ["one", "two", "three"]
    for name in names:
        (project / f"{name}.yaml").write_text(
            text.replace("name: weather", f"name: {name}", 1).replace("file: ", "text: ")
        )
    command = [*forked.interpreter(), "-m", "stubwright", "generate", "-q"]
    runs = [subprocess.Popen([*command, f"{name}.yaml"], cwd=project) for name in names]
    assert [run.wait(60) for run in runs] == [0, 0, 0]
    listed = json.loads((project / "generated/stubwright.lock.json").read_text())["manifests"]
    assert listed.keys() == {f"{name}.yaml" for name in names}


@pytest.mark.parametrize("way", amounts.sample(["named", "listed", "listed, and the old one stays"], 1))
def test_a_manifest_under_another_name_keeps_its_package(way: str, project: Path) -> None:
    named = ("specs/weather.yaml",) if way == "named" else ()
    listing = '[tool.stubwright]\nmanifests = ["{}"]\n'
    (project / "pyproject.toml").write_text(listing.format("specs/weather.yaml"))
    assert stubwright("generate", *named, cwd=project).returncode == 0
    before = project / "specs/weather.yaml"
    after = project / "specs/other.yaml"
    after.write_text(before.read_text().replace("name: get_forecast", "name: forecast"))
    (project / "pyproject.toml").write_text(listing.format("specs/other.yaml"))
    if not way.endswith("stays"):
        before.unlink()
    named = ("specs/other.yaml",) if named else ()
    done = stubwright("generate", *named, cwd=project)
    assert done.returncode == 0, done.stderr
    models = {path.name for path in (project / "generated/weather_mcp/models").glob("*forecast.py")}
    assert models == {"forecast.py"}
    listed = json.loads((project / "generated/stubwright.lock.json").read_text())["manifests"]
    assert listed.keys() == {"specs/other.yaml"}
    assert stubwright("generate", "--check", *named, cwd=project).returncode == 0
    if way.endswith("stays"):
        refused = stubwright("generate", "specs/weather.yaml", cwd=project)
        assert "is already generated from `specs/other.yaml`" in refused.stderr


def test_an_output_without_a_name_is_refused(project: Path) -> None:
    done = stubwright("generate", "-o", "", "specs/weather.yaml", cwd=project)
    assert (done.returncode, "stubwright: -o is empty" in done.stderr) == (2, True)
    (project / "pyproject.toml").write_text('[tool.stubwright]\nmanifests = ["specs/weather.yaml"]\noutput = ""\n')
    done = stubwright("generate", cwd=project)
    assert done.returncode == 1
    assert "pyproject.toml:3:1: error[SW410]: `output` in `[tool.stubwright]` must be a path" in done.stderr


def test_what_is_stale_is_told_to_programs_too(project: Path) -> None:
    stubwright("generate", "specs/weather.yaml", cwd=project)
    package = project / "generated/weather_mcp"
    for name in ("registry.py", "py.typed"):
        (package / name).unlink()
    (package / "client.py").write_text((package / "client.py").read_text() + "X = 1\n")
    manifest = project / "specs/weather.yaml"
    manifest.write_text(manifest.read_text().replace("name: get_forecast", "name: forecast"))
    done = stubwright("generate", "--check", "specs/weather.yaml", "--format", "json", cwd=project)
    assert done.returncode == 1
    found = {one["file"]: (one["code"], one["message"]) for one in json.loads(done.stdout)}
    for name, code, state in (
        ("registry.py", "SW407", "this file is missing"),
        ("py.typed", "SW407", "this file is missing"),
        ("models/forecast.py", "SW407", "this file is missing"),
        ("models/get_forecast.py", "SW407", "this file is no longer generated"),
        ("handlers.py", "SW407", "this file is stale"),
        ("client.py", "SW402", "this generated file was edited by hand, so it was left unchanged"),
    ):
        assert found[f"generated/weather_mcp/{name}"] == (code, state)
    shown = stubwright("generate", "--check", "specs/weather.yaml", "--format", "github", cwd=project)
    assert "::error file=generated/weather_mcp/registry.py,line=1," in shown.stdout


@pytest.mark.long
def test_headers_name_the_command_that_makes_the_file(project: Path) -> None:
    def command(output: str) -> str:
        return (project / output / "weather_mcp/registry.py").read_text().splitlines()[1]

    stubwright("generate", "specs/weather.yaml", cwd=project)
    assert command("generated") == "# Regenerate with: stubwright generate specs/weather.yaml"
    stubwright("generate", "specs/weather.yaml", "-o", "made", cwd=project)
    assert command("made") == "# Regenerate with: stubwright generate specs/weather.yaml -o made"
    here = project / "here"
    here.mkdir()
    stubwright("generate", "../specs/weather.yaml", "-o", ".", cwd=here)
    assert command("here") == "# Regenerate with: stubwright generate specs/weather.yaml -o here"
    (project / "pyproject.toml").write_text('[tool.stubwright]\nmanifests = ["specs/*.yaml"]\noutput = "made"\n')
    stubwright("generate", cwd=project)
    assert command("made") == "# Regenerate with: stubwright generate specs/weather.yaml"


def test_a_project_says_what_to_compile(project: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.stubwright]\nmanifests = ["specs/*.yaml"]\noutput = "made"\n')
    assert stubwright("generate", cwd=project).returncode == 0
    assert (project / "made/weather_mcp/client.py").is_file()
    other = (project / "specs/weather.yaml").read_text().replace("name: weather\n", "name: other\n")
    (project / "specs/other.yaml").write_text(other)
    assert stubwright("generate", cwd=project).returncode == 0
    assert (project / "made/other_mcp/client.py").is_file()
    (project / "specs/weather.yaml").unlink()
    gone = stubwright("generate", cwd=project)
    assert gone.returncode == 0
    assert re.fullmatch(
        r"specs/other\.yaml: up to date\n"
        r"made/test_weather_mcp\.py: 1 file removed, because `specs/weather\.yaml` no longer exists\n"
        r"made/weather_mcp: \d+ files removed, because `specs/weather\.yaml` no longer exists\n",
        gone.stdout,
    )
    assert not (project / "made/weather_mcp").exists()
    assert stubwright("generate", cwd=project).stdout == "specs/other.yaml: up to date\n"


def test_a_manifest_that_fails_leaves_the_others_their_packages(project: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.stubwright]\nmanifests = ["specs/*.yaml"]\n')
    text = (project / "specs/weather.yaml").read_text()
    names = ("alpha", "broken", "edited", "gone", "omega")
    for name in names:
        (project / f"specs/{name}.yaml").write_text(text.replace("name: weather", f"name: {name}", 1))
    (project / "specs/weather.yaml").unlink()
    assert stubwright("generate", cwd=project).returncode == 0
    made = project / "generated"
    for name in ("alpha", "broken", "edited", "omega"):
        path = project / f"specs/{name}.yaml"
        path.write_text(path.read_text() + "  - {name: more, description: More., inputSchema: {type: object}}\n")
    broken = project / "specs/broken.yaml"
    broken.write_text(broken.read_text() + "  - {name: 1}\n")
    (made / "edited_mcp/server.py").write_text("X = 1\n")
    (project / "specs/gone.yaml").unlink()
    before = {path: path.read_bytes() for path in made.rglob("*.*") if path.is_file()}
    done = stubwright("generate", cwd=project)
    assert done.returncode == 1
    said = [line for line in done.stdout.splitlines() if "nothing" in line or "written" in line]
    assert [re.sub(r"\d+ files written, .*", "N files written", line) for line in said] == [
        "generated/alpha_mcp: N files written",
        "specs/broken.yaml: nothing written",
        "specs/edited.yaml: nothing written",
        "generated/omega_mcp: N files written",
    ]
    after = {path: path.read_bytes() for path in made.rglob("*.*") if path.is_file()}
    changed = {path.relative_to(made).parts[0] for path in after if after[path] != before.get(path)}
    assert changed == {"alpha_mcp", "omega_mcp", "stubwright.lock.json"}
    assert before.keys() <= after.keys(), "what is gone is removed by a run in which all is right"
    broken.unlink()
    assert stubwright("generate", "--force", cwd=project).returncode == 0
    assert sorted(path.name for path in made.glob("*_mcp")) == ["alpha_mcp", "edited_mcp", "omega_mcp"]


@pytest.mark.long
def test_a_project_is_the_same_from_each_of_its_folders(project: Path) -> None:
    text = '[tool.stubwright]\nmanifests = ["specs/*.yaml"]\n\n[project]\ndependencies = []\n'
    (project / "pyproject.toml").write_text(text)
    below = project / "sub/folder"
    below.mkdir(parents=True)
    (project / "sub/pyproject.toml").write_text("[tool.black]\n")
    (project / "src").mkdir()
    (project / "src/weather.py").write_text("class Weather: pass\n")
    (project / "weather.py").unlink()
    (project / "specs" / "weather.py").unlink()
    made = stubwright("generate", cwd=project)
    assert made.returncode == 0, made.stderr
    tree = {path: path.read_bytes() for path in (project / "generated").rglob("*.*")}
    assert stubwright("generate", cwd=below).stdout == "../../specs/weather.yaml: up to date\n"
    for folder, given in ((below, "../../specs/weather.yaml"), (project / "specs", "weather.yaml")):
        for argv in ((), (given,)):
            done = stubwright("generate", "--force", *argv, cwd=folder)
            assert done.returncode == 0, done.stderr
            assert f"{os.path.relpath(project / 'src', folder)}/weather.py:1:7: warning[SW420]" in done.stderr
            assert stubwright("generate", "--check", *argv, cwd=folder).returncode == 0
            checked = stubwright("check", *argv, cwd=folder)
            assert f"{os.path.relpath(project, folder)}/pyproject.toml:5:1: warning[SW411]" in checked.stderr
            assert "    5 | dependencies = []" in checked.stderr
    assert {path: path.read_bytes() for path in (project / "generated").rglob("*.*")} == tree
    assert not list(project.glob("s*/**/generated"))
    (project / "sub/.git").mkdir()
    assert stubwright("check", cwd=below).returncode == 2


NEEDS = "the server generated from `specs/weather.yaml` requires"
RUNTIME = '"stubwright-runtime"'


@pytest.mark.parametrize(
    ("own", "other", "expected"),
    [
        (RUNTIME, "", []),
        ("", "", [f"{NEEDS} `stubwright-runtime`", "add it to `dependencies` under `[project]`"]),
        ("", '[dependency-groups]\nserver = ["stubwright-runtime[redis]"]', []),
        ("", '[dependency-groups]\nlint = []\ndev = [{include-group = "lint"}, "Stubwright_Runtime[all]"]', []),
        ("", '[project.optional-dependencies]\nserver = ["stubwright-runtime[redis]>=0.1"]', []),
        ('"stubwright-runtime[otel]"', "", []),
        ("", '[dependency-groups]\ndev = ["stubwright"]', [f"{NEEDS} `stubwright-runtime`"]),
        ("", "dependency-groups = 1", None),
        ("", "[dependency-groups]\ndev = 1\n[project.optional-dependencies]\na = [1]", None),
    ],
)
def test_what_extras_and_groups_of_a_project_declare_is_not_missing(
    own: str, other: str, expected: list[str] | None, project: Path
) -> None:
    head, rest = (other, "") if other.startswith("dep") else ("", other)
    text = f"{head}\n[project]\ndependencies = [{own}]\n{rest}\n[tool.stubwright]\nmanifests = ['specs/*.yaml']\n"
    (project / "pyproject.toml").write_text(text)
    told = stubwright("check", cwd=project).stderr
    assert ("SW411" in told) == (expected != [])
    for words in expected or ():
        assert words in told


@pytest.mark.long
def test_this_checkout_has_nothing_to_warn_of() -> None:
    checked = stubwright("check", "--strict", cwd=ROOT)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_the_bytes_depend_on_nothing_but_the_manifest(project: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    shutil.copytree(project / "specs", elsewhere / "specs")
    stubwright("generate", "specs/weather.yaml", cwd=project, env={"PYTHONHASHSEED": "1", "LC_ALL": "C"})
    absolute = str(elsewhere / "specs/weather.yaml")
    stubwright("generate", absolute, "-o", str(elsewhere / "generated"), cwd=ROOT)
    made = [
        {
            path.relative_to(root): path.read_bytes()
            for path in sorted((root / "generated").rglob("*"))
            if path.is_file()
        }
        for root in (project, elsewhere)
    ]
    assert made[0]
    assert made[0] == made[1]


def test_quick_commands_do_not_import_what_is_slow(project: Path) -> None:
    stubwright("generate", "specs/weather.yaml", cwd=project)
    program = (
        "import sys; from stubwright import cli\n"
        "statuses = [cli.run([verb, 'specs/weather.yaml']) for verb in ('check', 'generate')]\n"
        "try: cli.run(['--help'])\n"
        "except SystemExit as end: statuses.append(end.code)\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules], statuses, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=project, capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == "[] [0, 0, 0]"


FULL = "stubwright: cannot write the output: No space left on device\n"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("check weather.yaml >&-", (0, "")),
        amounts.mark_long(("check weather.yaml 2>&-", (0, ""))),
        amounts.mark_long(("check nothing.yaml 2>/dev/full", (1, ""))),
        ("schema >/dev/full", (1, FULL)),
        amounts.mark_long(("--help >/dev/full", (1, FULL))),
        amounts.mark_long(("diff weather.yaml weather.yaml >/dev/full", (1, FULL))),
        amounts.mark_long(("generate --check weather.yaml >/dev/full", (1, FULL))),
        amounts.mark_long(("import tools saved.json >/dev/full", (1, FULL))),
        ("schema | head -c 1 >/dev/null", (0, "")),
    ],
)
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_an_output_that_takes_nothing(line: str, expected: tuple[int, str], project: Path) -> None:
    (project / "specs/saved.json").write_text('{"tools": []}')
    command = f"{shlex.quote(sys.executable)} -m stubwright {line}"
    done = subprocess.run(command, shell=True, cwd=project / "specs", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == expected


def test_output_is_in_utf_8_wherever_it_goes(tmp_path: Path) -> None:
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": ""}
    done = stubwright("new", "--help", cwd=tmp_path, env=ascii_only)
    assert (done.returncode, done.stderr) == (0, "")
    assert "-- COMMAND ARGS…" in done.stdout


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="file names are Unicode there")
@pytest.mark.parametrize("command", [amounts.mark_long(["check", "é.yaml"]), ["lock", "é.yaml", "-o", "ö.yaml"]])
def test_file_names_are_in_utf_8_in_every_locale(command: list[str], tmp_path: Path) -> None:
    """In a separate process, because the encoding of file names belongs to the interpreter."""
    text = "stubwright: 1\nserver: {name: a, version: 1.0.0}\ninclude: [ü/*.yaml]\n"
    (tmp_path / "é.yaml").write_text(text)
    (tmp_path / "ü").mkdir()
    (tmp_path / "ü" / "ñ.yaml").write_text(
        "stubwright: 1\ntools:\n- {name: get, description: d, inputSchema: {type: object}}\n"
    )
    env = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    words = [sys.executable, "-m", "stubwright", *command]
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "ö.yaml").exists() is (command[0] == "lock")


def test_schema_prints_a_schema_that_the_manifests_here_satisfy(tmp_path: Path) -> None:
    done = stubwright("schema", cwd=tmp_path)
    schema = json.loads(done.stdout)
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"


BAD_FILES = {
    "missing": None,
    "empty": b"",
    "binary": bytes(range(256)) * 4,
    "utf-8": b"stubwright: 1\nserver: {name: \xff}\n",
    "list": b"- stubwright: 1\n",
    "scalar": b"42\n",
    "version": b"stubwright: 2\nserver: {name: a, version: '1'}\n",
    "tools": b"stubwright: 1\nserver: {name: a, version: '1'}\ntools: {a: 1}\n",
    "tool": b"stubwright: 1\nserver: {name: a, version: '1'}\ntools: [[1], 2, null]\n",
    "deep": b"[" * 10_000,
    "bomb": b"a: &a [x, x]\n"
    + b"".join(
        b"k%d: &k%d [*%s, *%s]\n" % (i, i, p, p)
        for i, p in ((i, b"a" if i == 0 else b"k%d" % (i - 1)) for i in range(40))
    ),
}


@pytest.mark.parametrize("suffix", ["yaml", "json"])
@pytest.mark.parametrize("kind", amounts.sample(BAD_FILES, 4))
def test_bad_files_give_diagnostics_and_nothing_is_written(kind: str, suffix: str, tmp_path: Path) -> None:
    content = BAD_FILES[kind]
    if content is not None:
        (tmp_path / f"m.{suffix}").write_bytes(content)
    done = stubwright("generate", f"m.{suffix}", cwd=tmp_path)
    assert done.returncode == 1
    assert f"m.{suffix}" in done.stderr
    assert "error[SW" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "generated").exists()


@pytest.mark.parametrize("argv", [["check"], ["import", "tools"]])
def test_nothing_is_fetched_that_should_be_a_file(argv: list[str], tmp_path: Path) -> None:
    done = stubwright(*argv, "https://localhost/a.json", cwd=tmp_path)
    assert done.returncode == 1
    assert "help: download it and list the file: URLs are not fetched" in done.stderr


def test_a_file_whose_name_is_no_text(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9.yaml")
    try:
        (tmp_path / name).write_text("stubwright: 1\nserver: {name: a, version: 1.0.0}\n")
    except OSError:
        pytest.skip("files must have names in UTF-8 here")
    for argv in (["check", name], ["generate", name], ["docs", name, "-o", "site"]):
        done = stubwright(*argv, cwd=tmp_path)
        assert (done.returncode, "error[SW001]: the name of `caf�.yaml`" in done.stderr) == (1, True), done.stderr


def test_a_folder_is_no_manifest(tmp_path: Path) -> None:
    done = stubwright("check", ".", cwd=tmp_path)
    assert done.returncode == 1
    assert "error[SW" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_output_folder_that_cannot_be_written(project: Path) -> None:
    (project / "generated").write_text("a file")
    done = stubwright("generate", "specs/weather.yaml", cwd=project)
    assert done.returncode == 1
    assert "error[SW406]: cannot write below `generated`" in done.stderr
    assert "Traceback" not in done.stderr


def test_import_tools_makes_a_manifest_that_compiles(tmp_path: Path) -> None:
    tools = [
        {
            "name": "get-weather",
            "description": "On:\n  one\n  two",
            "inputSchema": {"properties": {"on": {"const": "no"}}},
        },
        {"name": "get_weather", "inputSchema": {"type": "object", "properties": {"x": {"default": "1e3"}}}},
    ]
    result = {"tools": tools, "serverInfo": {"name": "saved", "version": "2"}, "instructions": "Ask\ntwice."}
    (tmp_path / "saved.json").write_text(json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}))
    done = stubwright("import", "tools", "saved.json", "-o", "m.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == [
        "note: the `inputSchema` of tool `get-weather` had no `type`; `type: object` was added, as MCP requires",
        (
            "note: tool `get-weather` has the same Python name as another entry; `pythonName:"
            " get_hyphen_minus_weather` was added"
        ),
        "note: `stubwright check` reports 1 warning about the contents of the file",
    ]
    assert stubwright("generate", "m.yaml", cwd=tmp_path).returncode == 0
    written = json.loads((tmp_path / "generated/saved_mcp/manifest.json").read_text())
    assert written["server"] == {"name": "saved", "version": "2", "instructions": "Ask\ntwice."}
    made = written["tools"]
    assert made[0]["description"] == tools[0]["description"]
    assert made[0]["inputSchema"] == {"type": "object", "properties": {"on": {"const": "no"}}}
    assert made[1]["inputSchema"] == tools[1]["inputSchema"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("nothing", None, "error[SW001]: `nothing` does not exist\n   help: check the path"),
        ("folder", None, "error[SW001]: `folder` is a folder"),
        ("a", b"", "a:1:1: error[SW003]: the file is empty\n   help: name WANTED"),
        ("a", b"PK\0", "a:1:1: error[SW002]: the file is binary\n   help: name WANTED"),
        ("a", b'{"a":\n  \xe9}', "a:2:3: error[SW002]: the byte 0xe9 is not UTF-8"),
        ("a", b'{"tools": [\n  {}},\n]}', "a:2:5: error[SW004]: expected a comma, or the end of the list or object"),
        ("a", b'{"tools": ' + b"[" * 100_000, "error[SW008]: this is nested more than 200 levels deep"),
        ("a", b'{"tools": [NaN]}', "a:1:12: error[SW007]: `NaN` is not a JSON value"),
        ("a", b'{"tools": []}\n\n  more', "a:3:3: error[SW004]: unexpected text after the JSON value"),
        ("a", '{"tools": []}'.encode("utf-16"), "a:1:1: error[SW002]: the file is in UTF-16\n   help: save it in"),
    ],
)
@pytest.mark.parametrize("kind", ["tools", "openapi"])
def test_a_file_to_import_that_is_broken_is_told_like_a_manifest(
    kind: str, name: str, content: bytes | None, said: str, tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    if content is not None:
        (tmp_path / name).write_bytes(content)
    done = stubwright("import", kind, name, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    wanted = {"tools": "a saved tools/list result in JSON", "openapi": "an OpenAPI document in YAML or JSON"}
    assert said.replace("WANTED", wanted[kind]) in done.stderr
    assert done.stderr.endswith(("1 error\n", "1 error in 1 file\n"))


@pytest.mark.parametrize(("cursor", "is_told"), [("2", True), ("", True), (" ", True), (None, False)])
def test_an_import_of_one_page_of_several_is_told(cursor: str | None, is_told: bool, tmp_path: Path) -> None:
    page = {"tools": [{"name": "a", "inputSchema": {"type": "object"}}], "nextCursor": cursor}
    (tmp_path / "saved.json").write_text(json.dumps(page))
    done = stubwright("import", "tools", "saved.json", cwd=tmp_path)
    assert (done.returncode, "note: the list has a `nextCursor`" in done.stderr) == (0, is_told)
    other = stubwright("diff", "saved.json", "saved.json", cwd=tmp_path)
    assert (other.returncode, other.stderr.count("note: saved.json: the list has a `nextCursor`")) == (
        0,
        2 * is_told,
    )


def test_the_name_of_a_server_is_no_cursor(tmp_path: Path) -> None:
    (tmp_path / "saved.json").write_text('{"tools": [], "serverInfo": {"name": "a", "nextCursor": "b"}}')
    assert "nextCursor" not in stubwright("import", "tools", "saved.json", cwd=tmp_path).stderr


def test_an_import_that_cannot_be_written_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "saved.json").write_text('{"tools": []}')
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    for output, named, why in (
        ("file/m.yaml", "file/m.yaml", "Not a directory"),
        ("folder", "folder", "Is a directory"),
    ):
        done = stubwright("import", "tools", "saved.json", "-o", output, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(f"error[SW406]: `{named}` cannot be written: {why}\n"), done.stderr
        assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder", "saved.json"]


@pytest.mark.parametrize(
    ("name", "starts"),
    [("m.yaml", "# Imported by stubwright."), ("m.json", '{\n  "x-imported": "Imported by stubwright.')],
)
def test_an_import_replaces_what_was_imported_and_nothing_else(name: str, starts: str, tmp_path: Path) -> None:
    (tmp_path / "saved.json").write_text('{"tools": []}')
    manifest = tmp_path / name
    manifest.write_text("")
    again = ("import", "tools", "saved.json", "-o", name)
    assert stubwright(*again, cwd=tmp_path).returncode == 0
    first = manifest.read_text()
    assert first.startswith(starts)
    assert stubwright("check", name, cwd=tmp_path).returncode == 0
    assert stubwright(*again, "--name", "other", cwd=tmp_path).returncode == 0
    other = manifest.read_text()
    assert "import tools saved.json --name other -o" in other
    assert [line for line in other.splitlines() if "name: other" in line or '"name": "other"' in line]
    assert len(other.splitlines()) == len(first.splitlines())
    mine = first.replace("mported", "y own")
    manifest.write_text(mine)
    refused = stubwright(*again, "--force", cwd=tmp_path)
    assert refused.returncode == 1
    assert refused.stderr.startswith(
        f"{name}:1:1: error[SW403]: this file was not imported, so it was left unchanged\n"
    )
    assert manifest.read_text() == mine


def test_import_says_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "saved.json").write_text('{"tools": 5}')
    done = stubwright("import", "tools", "saved.json", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert (
        done.stderr
        == 'stubwright: `saved.json` cannot be imported: it does not have a list of tools: expected `{"tools": […]}`, a'
        " list, or a JSON-RPC response\n"
    )


def test_a_person_is_told_of_what_takes_long(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    said, end = "", time.monotonic() + 60
    with console.Printer("text", strict=False).show_work("compiling a.yaml"):
        while not said:
            assert time.monotonic() < end
            time.sleep(0.02)
            said = capsys.readouterr().err
    with console.Printer("text", strict=False).show_work("compiling b.yaml"):
        pass
    with console.Printer("text", strict=False, quiet=True).show_work("compiling c.yaml"):
        time.sleep(1.2)
    assert said + capsys.readouterr().err == "compiling a.yaml …\r\x1b[K"


@pytest.mark.parametrize("words", [["list"], ["inspect"], ["call", "--mock"], ["test"], ["check"], ["docs"]])
def test_an_invalid_manifest_is_reported_as_json(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.yaml").write_text("stubwright: [")
    more = {"call": ["greet"], "docs": ["-o", "site"]}.get(words[0], [])
    assert cli.run([*words, "m.yaml", *more, "--format", "json"]) == 1
    out, err = capsys.readouterr()
    assert [each["code"] for each in json.loads(out)] == ["SW004"], err
