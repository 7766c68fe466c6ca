"""What a manifest promises, the server keeps, or it does not start."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT
from packages import generate, imported, manifest, tool
from toolwright.runtime.server.protections import KEEPERS, Unserved

SERVED: Mapping[str, tuple[Any, str]] = {
    "concurrency": (2, "tests/runtime/test_policy_limits.py::test_a_thread_keeps_its_place_until_it_ends"),
    "confirm": (True, "tests/runtime/test_server_asking.py::test_the_server_asks_before_it_runs_a_tool"),
    "maxResultBytes": ("1KiB", "tests/runtime/test_policy_limits.py::test_sizes_are_those_of_the_json_in_bytes"),
    "rateLimit": ("2/minute", "tests/runtime/test_policy_limits.py::test_each_principal_has_its_own_window"),
    "redact": (["/a"], "tests/test_secrets.py::test_no_secret_is_logged"),
    "scopes": (["read"], "tests/runtime/test_policy_scopes.py::test_the_matrix"),
    "timeout": ("1s", "tests/runtime/test_policy_limits.py::test_an_async_handler_is_stopped_in_time"),
}
"""For each part of a policy something that needs to be kept, and a test that it is."""


ALWAYS_KEPT = {
    "maxArgumentBytes": "tests/runtime/test_policy_limits.py::test_sizes_are_those_of_the_json_in_bytes",
    "sanitize": "tests/runtime/test_server_hygiene.py::test_results_are_cleaned_as_the_policy_has_it",
}
"""What each package can do, whatever its manifest says."""

NOT_FOR_SERVERS = {"onStateLoss", "trusted"}
"""It says what other parts do while the state is lost; and is for clients."""


def _schema() -> Any:
    return json.loads((files("toolwright") / "compile" / "manifest.schema.json").read_text("utf-8"))


def test_each_part_of_a_policy_has_a_test_of_its_serving() -> None:
    """Whoever adds a part to the manifest's schema says here how it is known to be kept."""
    definitions = _schema()["$defs"]
    policies = {name: one for name, one in definitions.items() if name.lower().endswith("policy")}
    assert policies.keys() >= {"policy", "defaultPolicy"}
    keys = {key for one in policies.values() for key in one["properties"]}
    assert keys - NOT_FOR_SERVERS - ALWAYS_KEPT.keys() == SERVED.keys()
    assert KEEPERS.keys() == SERVED.keys()
    for name in (*(each for _, each in SERVED.values()), *ALWAYS_KEPT.values()):
        path, _, test = name.partition("::")
        assert f"def {test}(" in (ROOT / path).read_text("utf-8"), name


AUTH = {"issuer": "https://auth.example.com", "audience": "https://mcp.example.com"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kept")
    tools = [
        tool(f"a{number}", {"a": {"type": "string"}}, toolwright={"policy": {key: value}})
        for number, (key, (value, _)) in enumerate(SERVED.items())
    ]
    generate(folder, manifest(tools, name="kept", auth=AUTH))
    return folder


@pytest.fixture
def package(folder: Path) -> Iterator[Any]:
    with imported(folder, "kept_mcp"):
        yield import_module("kept_mcp.registry").PACKAGE


class Handlers:
    """Has all methods."""

    async def any(self, args: Any, ctx: Any) -> str:
        raise AssertionError

    def __getattr__(self, name: str) -> Any:
        if name.startswith("a") and name[1:].isdecimal():
            return self.any
        raise AttributeError(name)


@pytest.mark.parametrize("feature", sorted({*KEEPERS.values(), "auth"}))
def test_a_package_without_what_keeps_it_does_not_start(feature: str, package: Any) -> None:
    server = import_module("kept_mcp.server")
    assert server.build_server(Handlers()) is not None
    assert feature in package.features
    package.features -= {feature}
    words = "|".join(
        ["`auth`"] if feature == "auth" else [f"`policy.{key}`" for key in KEEPERS if KEEPERS[key] == feature]
    )
    for start in (server.build_server, server.asgi_app):
        with pytest.raises(_unserved(package), match=f"declares ({words}), and the package has not what keeps it"):
            start(Handlers())


def test_a_package_without_tasks_does_not_start_where_tools_run_as_such(tmp_path: Path) -> None:
    generate(tmp_path, manifest([tool("a0", execution={"taskSupport": "optional"})], name="kept"))
    with imported(tmp_path, "kept_mcp"):
        server, package = import_module("kept_mcp.server"), import_module("kept_mcp.registry").PACKAGE
        assert server.build_server(Handlers()).tasks is not None
        package.features -= {"tasks"}
        with pytest.raises(_unserved(package), match=r"declares `execution\.taskSupport`, and the package has not"):
            server.build_server(Handlers())


def _unserved(package: Any) -> type[Exception]:
    """The package's own class."""
    found: type[Exception] = import_module(f"{package.name}._runtime.server.protections").Unserved
    assert found.__name__ == Unserved.__name__
    return found


@pytest.mark.parametrize("section", ["tools", "policy"])
def test_what_nobody_knows_is_not_left_open(section: str, folder: Path, tmp_path: Path) -> None:
    """A part of a policy that a newer version wrote, or somebody's hand."""
    value = manifest([tool("a0")], name="kept")
    generate(tmp_path, value)
    path = tmp_path / "kept_mcp" / "manifest.json"
    said = json.loads(path.read_text())
    policy = {"x-ours": 1, "quarantine": True}
    if section == "policy":
        said["policy"] = policy
    else:
        said["tools"][0]["toolwright"] = {"policy": policy}
    path.write_text(json.dumps(said))
    with imported(tmp_path, "kept_mcp"):
        server = import_module("kept_mcp.server")
        with pytest.raises(ValueError, match=r"declares `policy\.quarantine`, and the package has not what keeps it"):
            server.build_server(Handlers())
