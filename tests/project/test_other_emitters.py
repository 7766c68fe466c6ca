"""`manifest.json` as the input of third-party emitters, such as the example in `go_structs.py`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import ROOT

import go_structs
from stubwright import cli

SHARED = """
stubwright: 1
server: {name: lake, version: 1.0.0}
schemas:
  Fish: {type: object, properties: {name: {$ref: "#/schemas/Name"}, prey: {$ref: "#/schemas/Fish"}}, required: [name]}
  Name: {type: string, description: %s}
tools:
  - {name: catch, description: Catch a fish., inputSchema: {type: object}, outputSchema: {$ref: "#/schemas/Fish"}}
"""


def test_the_example_writes_the_structs_of_a_package() -> None:
    written = go_structs.write(json.loads((ROOT / "generated/weather_mcp/manifest.json").read_text("utf-8")))
    assert "\n// GetForecastInput is the input of the tool get_forecast.\n" in written
    assert (
        '\ntype GetForecastInput struct { Location string `json:"location"`; Days int64 `json:"days,omitempty"` }\n'
        in (written)
    )


@pytest.mark.parametrize("size", [1, 20_000])  # a shared schema of 16 KiB is stored once for all tools
def test_the_example_reads_shared_schemas(size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lake.yaml").write_text(SHARED % ("x" * size))
    assert cli.run(["generate", "lake.yaml", "-q"]) == 0
    manifest = json.loads(Path("generated/lake_mcp/manifest.json").read_text("utf-8"))
    assert ("bundled" in manifest) == (size > 16_384)
    fish = 'struct { Name string `json:"name"`; Prey any `json:"prey,omitempty"` }'
    assert f"type CatchOutput {fish}\n" in go_structs.write(manifest)
