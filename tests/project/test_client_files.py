"""Configuration files of MCP clients: adding and removing a server changes no other part.

`tests/clients/NAME/` has for each client a user's file (`full`) and a damaged file, with the results: without a file
(`empty.installed`), from the full file (`full.installed`), and the error for the damaged file (`damaged.txt`).
`pytest --update` rewrites the results.
"""

from __future__ import annotations

import json
import os
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import amounts
from stubwright.project.clients import configuration, jsonc, toml, variables
from stubwright.project.clients.configuration import Entry, RefusedError, edit
from stubwright.project.clients.jsonc import EditError
from stubwright.project.clients.table import CLIENTS, Client
from stubwright.project.files import disk
from stubwright.project.launch import Launch

GOLDEN = Path(__file__).parents[1] / "clients"
LAUNCH = Launch("/srv/.venv/bin/python", "weather_mcp", "weather:Weather", ("/srv/generated", "/srv/src"))
VARIABLES = {"TOKEN": 'a "quoted" \\ one', "CITY": "Köln"}


def entry(client: Client, name: str = "weather") -> Entry:
    return Entry.make(client, name, LAUNCH, VARIABLES)


def suffix(client: Client) -> str:
    return "toml" if client.form == "toml" else "json"


def parsed(client: Client, text: str) -> Any:
    if client.form == "toml":
        return tomllib.loads(text)
    found = jsonc._read(text, client.form == "jsonc")
    return json.loads(found.bare) if found is not None else {}


@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
@pytest.mark.parametrize("state", ["empty", "full"])
def test_a_server_is_put_in(client: Client, state: str, tmp_path: Path, update: bool) -> None:
    file = tmp_path / f"settings.{suffix(client)}"
    before = b""
    if state == "full":
        before = (GOLDEN / client.name / f"full.{suffix(client)}").read_bytes()
        file.write_bytes(before)
    assert edit(file, entry(client).put, private=True)
    golden = GOLDEN / client.name / f"{state}.installed.{suffix(client)}"
    if update:
        golden.write_bytes(file.read_bytes())
    assert file.read_bytes() == golden.read_bytes()
    was, now = parsed(client, before.decode()), parsed(client, file.read_text("utf-8"))
    servers = now[client.key]
    put = servers.pop("weather")
    assert put["env"] == {"PYTHONPATH": os.pathsep.join(LAUNCH.folders), **VARIABLES}
    assert [put["command"], *put["args"]] == [LAUNCH.python, *LAUNCH.arguments]
    was.get(client.key, {}).pop("weather", None)
    assert now == {**was, client.key: was.get(client.key, {})}
    assert not edit(file, entry(client).put, private=True)  # it already exists
    assert file.read_bytes() == golden.read_bytes()


@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
def test_a_server_that_is_taken_out_leaves_what_was_there(client: Client, tmp_path: Path) -> None:
    file = tmp_path / "settings"
    before = (GOLDEN / client.name / f"full.installed.{suffix(client)}").read_bytes()
    file.write_bytes(before)
    assert edit(file, entry(client, "another").put, private=True)
    assert file.read_bytes() != before
    assert edit(file, entry(client, "another").remove, private=True)
    assert file.read_bytes() == before
    assert not edit(file, entry(client, "another").remove, private=True)


@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
def test_a_damaged_file_is_left_as_it_is(client: Client, tmp_path: Path, update: bool) -> None:
    damaged = GOLDEN / client.name / f"damaged.{suffix(client)}"
    file = tmp_path / "settings"
    file.write_bytes(damaged.read_bytes())
    with pytest.raises(RefusedError) as refused:
        edit(file, entry(client).put, private=True)
    found = refused.value.diagnostic
    said = f"{found.at}\n{found.message}\n{found.help}\n".replace(str(file), "settings")
    golden = damaged.with_name("damaged.txt")
    if update:
        golden.write_text(said)
    assert said == golden.read_text()
    assert file.read_bytes() == damaged.read_bytes()
    assert os.listdir(tmp_path) == ["settings"]  # noqa: PTH208


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("[1]", 1, 1, "this file is a list, not an object"),
        ('{\n  "servers": []\n}', 2, 14, "`servers` is a list, not an object"),
        ('{"servers": null}', 1, 13, "`servers` is null, not an object"),
        ('{"servers": {}, "servers": {}}', 1, 17, "duplicate key `servers`; the first one is on line 1"),
        ('{"servers": {} /* no end', 1, 16, "this comment is not closed"),
        ('{"servers": {}} // fine\n x', 2, 2, "unexpected text after the JSON value"),
        ("[" * 100_000, 1, 201, "this is nested more than 200 levels deep"),
    ],
)
def test_what_is_no_settings_file_is_told_with_its_place(
    text: str, line: int, column: int, message: str, tmp_path: Path
) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(text)
    with pytest.raises(RefusedError) as refused:
        edit(file, entry(CLIENTS["vscode"]).put, private=True)
    at: Any = refused.value.diagnostic.at
    assert (at.line, at.column, refused.value.diagnostic.message) == (line, column, message)
    assert file.read_text() == text


@pytest.mark.parametrize("strict", ["claude", "claude-code"])
def test_comments_are_a_mistake_where_the_client_reads_none(strict: str) -> None:
    with pytest.raises(EditError):
        entry(CLIENTS[strict]).put("{} // a comment")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{}", '{\n  "s": {\n    "n": 1\n  }\n}'),
        ("", '{\n  "s": {\n    "n": 1\n  }\n}\n'),
        ("// mine\n", '// mine\n{\n  "s": {\n    "n": 1\n  }\n}\n'),
        ('{"s":{"a":2}}', '{"s":{"a":2, "n": 1}}'),
        ('{"s":{"n":2}}', '{"s":{"n":1}}'),
        ('{"s":{"n" : 1}}', '{"s":{"n" : 1}}'),
        ('{\n\t"s": {\n\t\t"a": 2\n\t}\n}', '{\n\t"s": {\n\t\t"a": 2,\n\t\t"n": 1\n\t}\n}'),
        ('{\r\n "s": {\r\n  "a": 2\r\n }\r\n}\r\n', '{\r\n "s": {\r\n  "a": 2,\r\n  "n": 1\r\n }\r\n}\r\n'),
        ('{\n  "s": {\n    "a": 2, // two\n  },\n}', '{\n  "s": {\n    "a": 2, // two\n    "n": 1,\n  },\n}'),
        ('{\n  "s": {\n    "a": 2 // two\n  }\n}', '{\n  "s": {\n    "a": 2, // two\n    "n": 1\n  }\n}'),
        ('{\n  "s": { /* none */ }\n}', '{\n  "s": { /* none */\n    "n": 1\n  }\n}'),
        ('{"s": {"a": 2 // two\n}}', '{"s": {"a": 2, // two\n  "n": 1\n}}'),
        ('{"a": "//,}", "b": [1,],}', '{"a": "//,}", "b": [1,], "s": {"n": 1}}'),
    ],
)
def test_json_keeps_its_style(before: str, after: str) -> None:
    assert jsonc.with_member(before, ["s", "n"], 1, comments=True) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"s": {"n": 1}}', '{"s": {}}'),
        ('{"s": {"n": 1, "a": 2}}', '{"s": {"a": 2}}'),
        ('{"s": {"a": 2, "n": 1}}', '{"s": {"a": 2}}'),
        ('{\n  "s": {\n    "n": 1, // mine\n    // of a\n    "a": 2\n  }\n}', None),
        ('{\n  "s": {\n    "a": 2, // two\n    "n": {\n    },\n  }\n}', '{\n  "s": {\n    "a": 2, // two\n  }\n}'),
        ('{\n  "s": {\n    "a": 2, // two\n    "n": {\n    }\n  }\n}', '{\n  "s": {\n    "a": 2 // two\n  }\n}'),
        ('{"s": {}}', '{"s": {}}'),
        ("{}", "{}"),
        ("", ""),
    ],
)
def test_json_without_a_member(before: str, after: str | None) -> None:
    made = jsonc.without_member(before, ["s", "n"], comments=True)
    assert made == after if after is not None else "// of a\n" in made
    found = jsonc._read(made, comments=True)
    assert found is None or "n" not in json.loads(found.bare).get("s", {})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)
INDENTS = st.sampled_from([None, 0, 1, 2, "\t"])


@given(
    st.dictionaries(st.text(max_size=3), JSON, max_size=3),
    st.dictionaries(st.text(max_size=3), JSON, max_size=3),
    JSON,
    INDENTS,
)
@settings(max_examples=amounts.choose("STUBWRIGHT_WHOLE_CORPUS", 35, 100, 100))
def test_json_is_what_it_was_and_the_member(
    document: dict[str, Any], servers: dict[str, Any], value: Any, indent: Any
) -> None:
    text = json.dumps({**document, "servers": servers}, indent=indent, ensure_ascii=False)
    made = jsonc.with_member(text, ["servers", "mine!"], value, comments=True)
    assert json.loads(made) == {**document, "servers": {**servers, "mine!": value}}
    back = jsonc.without_member(made, ["servers", "mine!"], comments=True)
    assert json.loads(back) == {**document, "servers": servers}
    assert back == text or not servers


@given(st.text(), st.text(min_size=1), st.text())
@settings(max_examples=amounts.choose("STUBWRIGHT_WHOLE_CORPUS", 35, 100, 100))
def test_toml_holds_any_text(key: str, name: str, value: str) -> None:
    table = {"command": value, "args": [value, key], "env": {key: value}}
    made = toml.with_table("# mine\nmodel = 'a'", ("servers", name), table)
    assert tomllib.loads(made) == {"model": "a", "servers": {name: table}}
    assert toml.without_table(made, ("servers", name)) == "# mine\nmodel = 'a'\n"


@pytest.mark.parametrize(
    "before",
    [
        'a = """\n[servers.n]\n"""\n',
        "a = '''\n[servers.n]'''\n\n[b]\n",
        "a = [\n  [1],\n  # [servers.n]\n]\n",
        '[servers.m]\nc = 1\n\n[servers.m.env]\nX = "]"\n',
        "[[list]]\na = 1\n[[list]]\na = 2\n",
        "[servers]\n",
        '["servers".\'o\']\nc = "#"\r\n',
    ],
)
def test_toml_knows_headers(before: str) -> None:
    made = toml.with_table(before, ("servers", "n"), {"c": "2", "env": {"X": "y"}})
    assert made.startswith(before)
    assert toml.without_table(made, ("servers", "n")) == before
    again = toml.with_table(made + "\n# of z\n[z]\n", ("servers", "n"), {"c": "3"})
    assert "# of z\n[z]\n" in again
    assert tomllib.loads(again)["servers"]["n"] == {"c": "3"}


@pytest.mark.parametrize("before", ["servers = {m = {c = '1'}}\n", "[servers]\nn.c = '1'\n", "servers.n.c = '1'\n"])
def test_toml_in_one_value_is_left_to_people(before: str) -> None:
    with pytest.raises(EditError) as refused:
        toml.with_table(before, ("servers", "n"), {"c": "2"})
    assert refused.value.problem.help == (
        "write it under its own header, such as `[servers.n]`, and run the command again"
    )


@pytest.mark.parametrize(
    "before",
    ["[[l]]\n[[l.k]]\n[servers.n]\n[[l]]\n", "[servers.n]\n[[l]]\n[servers.m]\n"],
)
def test_toml_that_would_be_put_in_another_order_is_refused(before: str) -> None:
    with pytest.raises(EditError) as refused:
        toml.with_table(before, ("servers", "n"), {"c": "2"})
    assert refused.value.problem.help == (
        "put the headers that start with `servers` next to each other, and run the command again"
    )


def test_toml_keeps_what_stands_between_the_tables_of_a_server() -> None:
    before = "[servers.n]\nc = '1'\n# of env\n[servers.n.env]\nX.y = '1'\n\n# of b\n[b]\n[servers.n.more]\n# end\n"
    assert toml.with_table(before, ("servers", "n"), {"c": "2"}) == (
        '[servers.n]\nc = "2"\n# of env\n\n# of b\n[b]\n# end\n'
    )
    assert toml.without_table(before, ("servers", "n")) == "# of env\n\n# of b\n[b]\n# end\n"


def test_toml_stays_as_long_when_a_server_is_replaced_again() -> None:
    before = toml.with_table("", ("servers", "n"), {"c": "1", "env": {"X": "y"}}) + "\n[b]\n"
    after = toml.with_table(before, ("servers", "n"), {"c": "2", "env": {"X": "y"}})
    assert after == before.replace('"1"', '"2"')


def test_a_link_stays_a_link_and_a_mode_a_mode(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "mcp.json"
    real.parent.mkdir()
    real.write_text("{}")
    real.chmod(0o640)
    link = tmp_path / "mcp.json"
    link.symlink_to("dotfiles/mcp.json")
    assert edit(link, entry(CLIENTS["cursor"]).put, private=True)
    assert link.is_symlink()
    assert "weather" in real.read_text()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    new = tmp_path / "new" / "mcp.json"
    assert edit(new, entry(CLIENTS["cursor"]).put, private=True)
    assert stat.S_IMODE(new.stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["dotfiles", "mcp.json", "mcp.json", "mcp.json", "new"]


def test_the_mark_at_the_start_stays_and_other_bytes_are_told(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_bytes(b"\xef\xbb\xbf{}")
    assert edit(file, entry(CLIENTS["cursor"]).put, private=True)
    assert file.read_bytes().startswith(b'\xef\xbb\xbf{\n  "mcpServers"')
    file.write_bytes(b'{"a":\n "\xff"}')
    with pytest.raises(RefusedError, match="not valid UTF-8: line 2 has the byte 0xff"):
        edit(file, entry(CLIENTS["cursor"]).put, private=True)
    file.unlink()
    file.mkdir()
    with pytest.raises(RefusedError, match="it is a folder"):
        edit(file, entry(CLIENTS["cursor"]).put, private=True)


def test_a_client_that_writes_at_the_same_time_loses_nothing(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text("{}")
    written: list[int] = []

    def put(text: str) -> str:
        if len(written) < 3:  # the client is quicker, three times
            written.append(len(written))
            disk.create(file, json.dumps({"written": written}))
        return entry(CLIENTS["claude"]).put(text)

    assert edit(file, put, private=True)
    made = json.loads(file.read_text())
    assert made["written"] == [0, 1, 2]
    assert "weather" in made["mcpServers"]


def test_a_file_that_never_rests_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    count = iter(range(1000))

    def put(text: str) -> str:
        disk.create(file, f'{{"n": {next(count)}}}')
        return entry(CLIENTS["claude"]).put(text)

    with pytest.raises(RefusedError, match="keeps changing"):
        edit(file, put, private=True)
    assert list(json.loads(file.read_text())) == ["n"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A=1\n# B=2\n\nexport C = three # not this\n", {"A": "1", "C": "three"}),
        ('A=\'$x # \\n\'\nB="a\\nb \\"c\\" \\\\" # end\nC=\nD=a#b\r\n', None),
        ("A=1\nA=2", {"A": "2"}),
    ],
)
def test_files_of_variables(text: str, found: dict[str, str] | None) -> None:
    expected = found or {"A": "$x # \\n", "B": 'a\nb "c" \\', "C": "", "D": "a#b"}
    assert variables.parse(text) == expected


@pytest.mark.parametrize("line", ["A", "1A=2", "A='x", 'A="x', "A='x' y", "=x", "A-B=1"])
def test_a_line_that_is_no_variable_is_told_and_not_quoted(line: str, tmp_path: Path) -> None:
    with pytest.raises(EditError) as refused:
        variables.parse(f"OK=1\n{line}\n")
    found = configuration.report_misplaced(f"OK=1\n{line}\n", Path(".env"), refused.value)
    at: Any = found.at
    assert (at.line, at.column) == (2, 1)
    assert found.message == "this line is not `NAME=value`; a quoted value must end on the same line"


def test_each_client_says_where_it_is_documented_and_has_files_on_all_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    home = Path("/home/ada")
    monkeypatch.setenv("HOME", str(home))
    for client in CLIENTS.values():
        assert client.sources
        assert all(source.startswith("https://") for source in client.sources)
        for system in ("darwin", "linux", "win32"):
            monkeypatch.setattr("sys.platform", system)
            file = client.find_file("user", Path("/p"), {})
            assert file is not None
            assert file.is_relative_to(home)
    monkeypatch.setattr("sys.platform", "linux")
    assert CLIENTS["vscode"].find_file("user", home, {"XDG_CONFIG_HOME": "/c"}) == Path("/c/Code/User/mcp.json")
    monkeypatch.setattr("sys.platform", "win32")
    assert CLIENTS["claude"].find_file("user", home, {"APPDATA": "/a"}) == Path("/a/Claude/claude_desktop_config.json")
    assert CLIENTS["cursor"].find_file("project", home, {}) == home / ".cursor/mcp.json"
    assert CLIENTS["claude"].find_file("project", home, {}) is None


def test_what_a_client_replaces_is_named() -> None:
    launch = Launch("/p", "a_mcp", None, ("/a",))
    values = {"A": "$x", "B": "${env:x}", "C": "5 $"}
    replaced = {name: Entry.make(client, "a", launch, values).list_replaced() for name, client in CLIENTS.items()}
    assert replaced["gemini"] == ("`A`", "`B`")
    assert replaced["vscode"] == ("`B`",)
    assert replaced["claude"] == ()
