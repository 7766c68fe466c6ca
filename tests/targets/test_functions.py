"""`tools_for` and `call_for` of a typed client, and `stubwright export`."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import forked
from packages import generate, imported, manifest, tool
from stubwright_runtime import ProjectionError

pytestmark = pytest.mark.anyio

MANIFEST = manifest(
    [
        tool("count.words", {"text": {"type": "string"}, "least": {"type": "integer"}}),
        tool("label", {"labels": {"type": "object", "additionalProperties": {"type": "string"}}}),
        tool("fail", {"why": {}}),
    ]
)


class Handlers:
    """Handlers that return their arguments."""

    async def count_words(self, args: Any, _ctx: Any) -> str:
        return f"{len(args.text.split())} {'least' in args.model_fields_set}"

    async def label(self, args: Any, _ctx: Any) -> str:
        return json.dumps(args.model_dump(mode="json", exclude_unset=True))

    async def fail(self, args: Any, _ctx: Any) -> str:
        raise ValueError(args.why)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("functions")
    with imported(folder, generate(folder, MANIFEST)) as made:
        yield made


async def test_a_model_s_calls_reach_the_tools(package: ModuleType) -> None:
    async with package.SampleClient.connect(package.build_server(Handlers())) as sample:
        functions = [each["function"] for each in sample.tools_for("openai-strict")]
        assert [each["name"] for each in functions] == ["count_words", "label", "fail"]
        assert all(each["strict"] for each in functions)
        answer = await sample.call_for("openai-strict", "count_words", '{"text": "a b", "least": null}')
        assert (answer.text, answer.is_error) == ("2 False", False)
        answer = await sample.call_for("openai-strict", "label", {"labels": [{"key": "a", "value": "b"}]})
        assert json.loads(answer.text) == {"labels": {"a": "b"}}
        answer = await sample.call_for("openai-strict", "fail", {"why": '"x"'})
        assert answer.is_error
        answer = await sample.call_for("gemini", "label", {"labels": [{"key": "a", "value": 1}]})
        assert answer.is_error  # the contract judges what a model made up
        assert "labels.a" in answer.text


async def test_what_is_wrong_is_said(package: ModuleType) -> None:
    async with package.SampleClient.connect(package.build_server(Handlers())) as sample:
        with pytest.raises(ProjectionError, match=r"unknown function .count\.words."):
            await sample.call_for("openai-strict", "count.words", {})
        with pytest.raises(ProjectionError, match="the arguments of label are not JSON"):
            await sample.call_for("openai-strict", "label", "{")
        with pytest.raises(ProjectionError, match="must be an object"):
            await sample.call_for("openai-strict", "label", "[]")
        with pytest.raises(ValueError, match="unknown API 'cursor'"):
            sample.tools_for("cursor")


def test_export_writes_what_the_client_has(package: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "sample.json"
    path.write_text(json.dumps(MANIFEST))
    for target in ("openai-strict", "gemini", "bedrock", "anthropic"):
        done = forked.run(["export", "sample.json", "--target", target, "--tool", "label"], tmp_path)
        assert done.returncode == 0, done.stderr
        shown = json.dumps(json.loads(done.stdout))
        assert "label" in shown
        assert "count" not in shown
    done = forked.run(["export", "sample.json", "--target", "gemini", "-o", "functions.json"], tmp_path)
    assert [*json.loads((tmp_path / "functions.json").read_text())[0]] == ["functionDeclarations"]
    done = forked.run(["export", "sample.json", "--target", "openai"], tmp_path)
    assert "note: renamed `count.words` to `count_words`" in done.stderr


@pytest.mark.parametrize("target", ["openai", "openai-strict"])
def test_export_names_a_description_that_is_too_long(target: str, tmp_path: Path) -> None:
    long = {**tool("count", {"text": {"type": "string"}}), "description": "x" * 1100}
    (tmp_path / "sample.json").write_text(json.dumps(manifest([long])))
    done = forked.run(["export", "sample.json", "--target", target], tmp_path)
    assert done.returncode == 0
    assert "`count` has a description of 1,100 characters, more than 1,024" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--target", "cursor"], "`cursor` does not support functions; the APIs with functions are `openai`, "),
        (["--target", "openi-strict"], "`openi-strict` does not support functions; did you mean `openai-strict`?"),
        (["--target", "openai", "--tool", "lable"], "there is no tool `lable`; did you mean `label`?"),
        (
            ["--target", "openai", "-o", "sample.json/x"],
            "`sample.json/x` cannot be written: ",
        ),
    ],
)
def test_export_says_what_is_wrong(arguments: list[str], said: str, tmp_path: Path) -> None:
    (tmp_path / "sample.json").write_text(json.dumps(MANIFEST))
    done = forked.run(["export", "sample.json", *arguments], tmp_path)
    assert done.returncode
    assert said in done.stderr
