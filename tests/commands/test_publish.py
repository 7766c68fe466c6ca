"""`stubwright publish`: metadata for registries and clients matches the project, and mismatches are detected."""

from __future__ import annotations

import base64
import json
import zipfile
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from command_line import stubwright
from stubwright import cli
from stubwright.publishing.review import HINTS

PYPROJECT = """\
[project]
name = "shop-mcp"
version = "1.2.0"
readme = "README.md"
urls = {Repository = "https://github.com/acme/shop"}

[project.scripts]
shop-mcp = "shop_mcp.__main__:run"

[tool.stubwright]
manifests = ["shop.yaml"]

[tool.stubwright.publish]
name = "io.github.acme/shop"
url = "https://shop.example.com/mcp"
image = "ghcr.io/acme/shop"
"""
MANIFEST = """\
stubwright: 1
server: {name: shop, version: 1.2.0, title: Tea shop, description: Sells tea.}
python: {package: shop_mcp, handlers: "shop:Shop"}
auth: {issuer: "https://auth.example.com", audience: "https://shop.example.com/mcp"}
apis: {stock: {baseUrl: "https://stock.example.com", baseUrlEnv: STOCK, auth: {main: {type: bearer, env: TOKEN}}}}
tools:
  - name: orders
    description: Lists orders.
    inputSchema: {type: object, properties: {member: {type: string}}}
    stubwright: {bind: {member: {claim: sub, local: {env: MEMBER}}}}
"""
README = "# Shop\n<!-- mcp-name: io.github.acme/shop -->\n"
DOCKERFILE = 'FROM python:3.13-slim\nLABEL io.modelcontextprotocol.server.name="io.github.acme/shop"\n'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    files = {"pyproject.toml": PYPROJECT, "shop.yaml": MANIFEST, "README.md": README, "Dockerfile": DOCKERFILE}
    for name, text in {**files, "shop.py": "class Shop: ...\n"}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_what_the_registry_gets(project: Path) -> None:
    done = stubwright("publish", cwd=project)
    assert done.returncode == 0, done.stderr
    value = json.loads((project / "server.json").read_text())
    assert {key: value[key] for key in ("name", "title", "description", "version")} == {
        "name": "io.github.acme/shop",
        "title": "Tea shop",
        "description": "Sells tea.",
        "version": "1.2.0",
    }
    assert value["repository"] == {"url": "https://github.com/acme/shop", "source": "github"}
    assert value["remotes"] == [{"type": "streamable-http", "url": "https://shop.example.com/mcp"}]
    pypi, oci = value["packages"]
    assert (pypi["identifier"], pypi["version"], pypi["transport"]) == ("shop-mcp", "1.2.0", {"type": "stdio"})
    assert oci["identifier"] == "ghcr.io/acme/shop:1.2.0"
    assert pypi["environmentVariables"] == oci["environmentVariables"]
    assert [(each["name"], each.get("isSecret"), each.get("default")) for each in pypi["environmentVariables"]] == [
        ("STOCK", None, "https://stock.example.com"),
        ("TOKEN", True, None),
        ("MEMBER", None, None),
    ]
    assert "mcp-publisher login github && mcp-publisher publish\n" in done.stdout
    assert stubwright("publish", "--check", cwd=project).stdout == "server.json: up to date\n"


def test_links_hold_what_clients_store(project: Path) -> None:
    lines = [line for line in stubwright("publish", cwd=project).stdout.splitlines() if line.startswith("- [")]
    cursor, code = (parse_qs(urlsplit(line.partition("(")[2].removesuffix(")")).query) for line in lines)
    entry = {"type": "http", "url": "https://shop.example.com/mcp"}
    assert json.loads(base64.b64decode(cursor["config"][0])) == json.loads(code["config"][0]) == entry
    (project / "pyproject.toml").write_text(PYPROJECT.replace('url = "https://shop.example.com/mcp"\n', ""))
    shown = stubwright("publish", cwd=project).stdout
    assert "claude mcp add shop --env 'STOCK=<STOCK>'" in shown
    assert shown.count("uvx shop-mcp`") == 1


@pytest.mark.parametrize(
    ("file", "old", "new", "where", "what"),
    [
        (
            "pyproject.toml",
            '"1.2.0"',
            '"1.2.1"',
            "shop.yaml:2:31",
            "version 1.2.0, although the project has 1.2.1",
        ),
        (
            "shop.yaml",
            "version: 1.2.0",
            "version: 1.3.0",
            "shop.yaml:2:31",
            "version 1.3.0, although the project has 1.2.0",
        ),
        ("server.json", '"1.2.0"', '"1.1.0"', "server.json", "does not match the project"),
        (
            "README.md",
            "acme/shop",
            "acme/store",
            "README.md:2:16",
            "`io.github.acme/store`, although the server's name is",
        ),
        ("README.md", "mcp-name", "name", "README.md:1:1", "does not mention `io.github.acme/shop`"),
        ("Dockerfile", "acme/shop", "acme/store", "Dockerfile:2:44", "contains `io.github.acme/store`"),
        ("shop.yaml", ", description: Sells tea.", "", "shop.yaml:2:16", "has no `description`"),
        ("shop.yaml", "Sells tea.", "x" * 101, "shop.yaml:2:68", "has 101 characters; the registry allows 100"),
        (
            "pyproject.toml",
            "io.github.acme/shop",
            "shop",
            "pyproject.toml:14:1",
            "is not a valid registry name",
        ),
        ("pyproject.toml", "https://shop", "http://shop", "pyproject.toml:15:1", "not a public URL"),
        ("pyproject.toml", "ghcr.io/acme/shop", "shop:latest", "pyproject.toml:16:1", "is not an image name"),
        ("pyproject.toml", "image =", "picture =", "pyproject.toml:16:1", "unknown key `picture`"),
        (
            "pyproject.toml",
            "image =",
            'scopes = ["raed"]\nimage =',
            "pyproject.toml:16:1",
            "lists `raed`, which the manifest",
        ),
        ("pyproject.toml", "shop-mcp =", "shop =", "pyproject.toml:7:1", "the project has no script `shop-mcp`"),
        ("pyproject.toml", 'version = "1.2.0"\n', "", "pyproject.toml:1:1", "`[project]` has no `version`"),
        (
            "pyproject.toml",
            "[tool.stubwright.publish]",
            "[tool.other]",
            "pyproject.toml:1:1",
            "`[tool.stubwright.publish]` is missing",
        ),
    ],
)
def test_what_does_not_fit_is_caught(project: Path, file: str, old: str, new: str, where: str, what: str) -> None:
    assert stubwright("publish", cwd=project).returncode == 0
    before = (project / "server.json").read_bytes()
    text = (project / file).read_text()
    assert old in text
    (project / file).write_text(text.replace(old, new))
    for options in (["--check"], []) if file != "server.json" else (["--check"],):
        done = stubwright("publish", *options, cwd=project)
        assert (done.returncode, where in done.stderr, what in done.stderr) == (1, True, True), done.stderr
    assert file == "server.json" or (project / "server.json").read_bytes() == before


def test_a_bundle_has_what_the_server_needs(project: Path) -> None:
    missing = stubwright("publish", "--bundle", "shop.mcpb", cwd=project)
    assert (missing.returncode, "run `stubwright generate`" in missing.stderr) == (2, True)
    assert stubwright("generate", cwd=project).returncode == 0
    made = []
    for name in ("shop.mcpb", "again.mcpb"):
        assert stubwright("publish", "--bundle", name, cwd=project).returncode == 0
        made.append((project / name).read_bytes())
        (project / "shop.py").touch()
    assert made[0] == made[1]
    with zipfile.ZipFile(project / "shop.mcpb") as archive:
        names = archive.namelist()
        value = json.loads(archive.read("manifest.json"))
    assert {"pyproject.toml", "README.md", "shop.py", "generated/shop_mcp/__main__.py"} <= set(names)
    assert value["server"]["entry_point"] in names
    assert value["server"]["mcp_config"]["args"] == ["run", "--directory", "${__dirname}", "shop-mcp"]
    assert value["server"]["mcp_config"]["env"]["TOKEN"] == "${user_config.token}"
    assert (value["user_config"]["token"]["sensitive"], value["user_config"]["token"]["required"]) == (True, True)


def test_users_of_a_local_server_get_its_scopes(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project)
    manifest, pyproject = project / "shop.yaml", project / "pyproject.toml"
    manifest.write_text(MANIFEST.replace("{bind:", "{policy: {scopes: [read, write]}, bind:"))
    pyproject.write_text(PYPROJECT + 'scopes = ["read"]\n')
    assert cli.run(["publish"]) == 0
    assert 'add `scopes = ["read", "write"]` to `[tool.stubwright.publish]`\n' in capsys.readouterr().err
    without_url = PYPROJECT.replace('url = "https://shop.example.com/mcp"\n', "")
    pyproject.write_text(without_url + 'scopes = ["read", "write"]\n')
    assert cli.run(["generate"]) == 0
    assert cli.run(["publish", "--bundle", "shop.mcpb"]) == 0
    told = capsys.readouterr()
    assert "scopes" not in told.err
    assert "uvx shop-mcp --scope read --scope write`" in told.out
    with zipfile.ZipFile("shop.mcpb") as archive:
        bundle = json.loads(archive.read("manifest.json"))
    assert bundle["server"]["mcp_config"]["args"][-4:] == ["--scope", "read", "--scope", "write"]
    assert len(bundle["tools"]) == 1
    passed = json.loads((project / "server.json").read_text())["packages"][0]["packageArguments"]
    assert passed == [{"type": "named", "name": "--scope", "value": scope} for scope in ("read", "write")]
    pyproject.write_text(without_url + 'scopes = ["read"]\n')
    assert cli.run(["publish", "--bundle", "shop.mcpb"]) == 0
    with zipfile.ZipFile("shop.mcpb") as archive:
        assert "tools" not in json.loads(archive.read("manifest.json")), "its user cannot see the tool"


HINTED = """\
    annotations: {readOnlyHint: true, destructiveHint: false, openWorldHint: false}
"""
REASONED = """\
      reasons:
        readOnlyHint: It only reads | asks <the> database.
        destructiveHint: Nothing is written.
        openWorldHint: The orders are ours.
"""


def test_reviewers_get_hints_with_reasons(project: Path) -> None:
    bare = stubwright("publish", "--review", "review.md", cwd=project)
    assert bare.returncode == 0
    assert "shop.yaml:7:11: warning[SW414]: `orders` lacks a value or a reason for `readOnlyHint`" in bare.stderr
    assert "| `readOnlyHint` | not said |  |" in (project / "review.md").read_text("utf-8")
    first = MANIFEST.rpartition("    stubwright: ")[0]
    (project / "shop.yaml").write_text(
        f"{first}{HINTED}    stubwright:\n      bind: {{member: {{claim: sub, local: {{env: MEMBER}}}}}}\n{REASONED}"
    )
    stale = stubwright("publish", "--review", "review.md", "--check", cwd=project)
    assert stale.returncode == 1
    assert "review.md:1:1: error[SW407]" in stale.stderr
    done = stubwright("publish", "--review", "review.md", cwd=project)
    assert "SW414" not in done.stderr
    page = (project / "review.md").read_text("utf-8")
    assert page.startswith("# Tools of Tea shop 1.2.0\n\n## `orders`\n\nLists orders.\n")
    assert "| `readOnlyHint` | `true` | It only reads \\| asks &lt;the> database. |" in page
    assert "| `openWorldHint` | `false` | The orders are ours. |" in page
    stubwright("generate", cwd=project)
    assert "The orders are ours" not in (project / "generated/shop_mcp/manifest.json").read_text("utf-8")


@pytest.mark.long
def test_a_new_project_becomes_a_listing_with_five_edits(tmp_path: Path) -> None:
    """As docs/publishing.md says: each edit mends what the command before it names."""
    assert stubwright("new", "desk", cwd=tmp_path).returncode == 0
    project = tmp_path / "desk"

    def edit(name: str, old: str, new: str) -> None:
        text = (project / name).read_text("utf-8")
        assert text.count(old) == 1, name
        (project / name).write_text(text.replace(old, new), "utf-8")

    manifest = "specs/desk.yaml"
    edit(manifest, "  version: 0.1.0\n", "  version: 0.1.0\n  title: Dice desk\n  description: Rolls dice.\n")
    edit(manifest, "python:\n", "targets: [claude-directory, openai-apps]\npython:\n")
    checked = stubwright("check", "--strict", cwd=project)
    assert checked.returncode == 1
    assert "`roll_dice` does not set `destructiveHint`" in checked.stderr
    assert "has `annotations` without a `title`" in checked.stderr
    edit(manifest, "{readOnlyHint: true,", "{title: Roll dice, readOnlyHint: true, destructiveHint: false,")
    checked = stubwright("check", "--strict", cwd=project)
    assert (checked.returncode, checked.stderr) == (0, "")
    edit("pyproject.toml", "[tool.stubwright]\n", f"{PUBLISHED}\n[tool.stubwright]\n")
    unnamed = stubwright("publish", cwd=project)
    assert unnamed.returncode == 1
    assert "add the line `<!-- mcp-name: io.github.ann/desk -->`" in unnamed.stderr
    readme = (project / "README.md").read_text("utf-8")
    (project / "README.md").write_text(f"{readme}\n<!-- mcp-name: io.github.ann/desk -->\n", "utf-8")
    reviewed = stubwright("publish", "--review", "review.md", cwd=project)
    assert reviewed.returncode == 0
    assert "lacks a value or a reason for `readOnlyHint`" in reviewed.stderr
    reasons = "".join(f"        {hint}: It only draws numbers.\n" for hint in HINTS)
    edit(manifest, "    stubwright:\n", f"    stubwright:\n      reasons:\n{reasons}")
    stubwright("publish", "--review", "review.md", cwd=project)
    stubwright("generate", cwd=project)
    done = stubwright("publish", "--review", "review.md", "--check", cwd=project)
    assert (done.returncode, done.stderr) == (0, "")
    assert stubwright("check", "--strict", cwd=project).stderr == ""


PUBLISHED = """\
[tool.stubwright.publish]
name = "io.github.ann/desk"
url = "https://desk.example.com/mcp"
"""
