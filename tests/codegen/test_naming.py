"""Conversion of wire names to Python names."""

from __future__ import annotations

import keyword
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from stubwright import naming, paths
from stubwright.pycode import Name


@pytest.mark.parametrize(
    ("wire", "method", "stem"),
    [
        ("get-weather", "get_weather", "GetWeather"),
        ("get_weather", "get_weather", "GetWeather"),
        ("API-post-page", "api_post_page", "ApiPostPage"),
        ("getHTTPResponse", "get_http_response", "GetHttpResponse"),
        ("DATA_EXPORT_v2", "data_export_v2", "DataExportV2"),
        ("admin.tools.list", "admin_tools_list", "AdminToolsList"),
        ("__node_version", "node_version", "NodeVersion"),
        ("2fa", "tool_2fa", "Tool2fa"),
        ("class", "class_", "Class"),
        ("connect", "connect_", "Connect"),
        ("list", "list_", "List"),
        ("Context", "context", "Context"),
        ("🚀", "tool", "Tool"),
        ("", "tool", "Tool"),
        ("天气", "天气", "天气"),
        ("abstractmethod", "abstractmethod_", "Abstractmethod"),
        ("deprecated", "deprecated_", "Deprecated"),
        ("get_\u0130l", "get_il", "GetIl"),
        ("\u01f0", "\u01f0", "J"),
    ],
)
def test_tool(wire: str, method: str, stem: str) -> None:
    names = naming.name_tool(wire)
    assert (names.method, names.stem) == (method, stem)


def test_a_python_name_of_the_manifest_wins() -> None:
    assert naming.name_tool("get-weather", "fetch") == naming.Names(Name("fetch"), Name("Fetch"), Name("fetch"))


@pytest.mark.parametrize("wire", ["shared", "prompts", "resources"])
def test_a_module_does_not_shadow_a_folder_of_models(wire: str) -> None:
    assert naming.name_tool(wire) == naming.Names(Name(wire), Name(wire.title()), Name(f"{wire}_"))


@pytest.mark.parametrize("wire", ["con", "AUX", "Nul", "prn", "com1", "COM9", "lpt-1", "LPT9"])
def test_a_module_has_no_name_that_windows_reserves(wire: str) -> None:
    names = naming.name_tool(wire)
    joined = wire.lower().replace("-", "_")
    assert names.method == joined
    assert names.module == (joined if "-" in wire else f"{joined}_")
    assert naming.name_shared(wire).module == names.module
    upper = joined.upper()
    assert naming.name_tool("other", upper) == naming.Names(
        Name(upper), naming.to_pascal(Name(upper)), Name(upper if "-" in wire else f"{upper}_")
    )
    assert naming.name_primitive("prompt", "other", joined).module == names.module
    assert not paths.is_device(naming.name_package(wire)), "which ends in `_mcp`"
    assert not paths.is_device(naming.name_handwritten_module(wire))


@pytest.mark.parametrize(
    ("server", "package", "stem"),
    [
        ("weather", "weather_mcp", "Weather"),
        ("my-server", "my_server_mcp", "MyServer"),
        ("github-mcp", "github_mcp", "Github"),
        ("airtable-mcp-server", "airtable_mcp", "Airtable"),
        ("AirtableMCPServer", "airtable_mcp", "Airtable"),
        ("mcp-server-git", "git_mcp", "Git"),
        ("mcp-git-server-mcp", "git_mcp", "Git"),
        ("weather-server", "weather_server_mcp", "WeatherServer"),
        ("server-mcp-tools", "server_mcp_tools_mcp", "ServerMcpTools"),
        ("mcp-server", "mcp_server_mcp", "McpServer"),
        ("mcp mcp", "mcp_mcp", "McpMcp"),
        ("mcp-3d", "server_3d_mcp", "Server3d"),
        ("mcp", "server_mcp", "Mcp"),
        ("3d", "server_3d_mcp", "Server3d"),
        ("🚀", "server_mcp", "Server"),
    ],
)
def test_server(server: str, package: str, stem: str) -> None:
    assert (naming.name_package(server), naming.name_server_stem(server)) == (package, stem)


@pytest.mark.parametrize(
    ("wire", "attribute"),
    [
        ("location", "location"),
        ("orderBy", "orderBy"),
        ("fill-opacity", "fill_opacity"),
        ("Parameter1.Name", "Parameter1_Name"),
        ("(default)", "default"),
        ("{{userName}}", "userName"),
        ("$and", "and_"),
        ("from", "from_"),
        ("self", "self_"),
        ("ctx", "ctx"),
        ("schema", "schema_"),
        ("copy", "copy_"),
        ("register", "register_"),
        ("json", "json_"),
        ("model_config", "model_config_"),
        ("list", "list_"),
        ("Field", "Field_"),
        ("_id", "id_"),
        ("__x", "x__"),
        ("2fa", "field_2fa"),
        ("", "field"),
        ("🚀", "field"),
        ("名字", "名字"),
    ],
)
def test_field(wire: str, attribute: str) -> None:
    assert naming.name_field(wire) == attribute


def test_fields_that_meet_are_told_apart_whatever_their_order() -> None:
    expected = {
        "StartTime": "StartTime",
        "StartTime<": "StartTime_less_than_sign",
        "StartTime>": "StartTime_greater_than_sign",
    }
    for order in permutations(expected):
        assert naming.name_fields(order) == expected
    assert naming.name_fields(["+1", "-1"]) == {"+1": "plus_sign_1", "-1": "hyphen_minus_1"}
    assert naming.name_fields(["🚀", ""]) == {"🚀": "rocket", "": "field"}


@given(st.text())
def test_every_wire_name_gives_a_usable_method(wire: str) -> None:
    names = naming.name_tool(wire)
    assert names.method.isidentifier()
    assert not keyword.iskeyword(names.method)
    assert names.stem.isidentifier()
    assert naming.name_package(wire).isidentifier()
    assert naming.name_server_stem(wire).isidentifier()


@given(st.lists(st.text(max_size=6), unique=True, max_size=8))
def test_every_set_of_properties_gives_distinct_usable_attributes(wires: list[str]) -> None:
    made = naming.name_fields(wires)
    assert list(made) == wires
    assert len(set(made.values())) == len(wires)
    for attribute in made.values():
        assert attribute.isidentifier()
        assert not keyword.iskeyword(attribute)
        assert not attribute.startswith("_")
        assert attribute not in dir(BaseModel)
    assert naming.name_fields(reversed(wires)) == made
