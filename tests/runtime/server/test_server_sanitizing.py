"""Sanitizing of output: removed and preserved characters, and a text mirror that parses to the same value."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import mcp
import pytest
from mcp_types import (
    Annotations,
    AudioContent,
    BlobResourceContents,
    ContentBlock,
    EmbeddedResource,
    Icon,
    ImageContent,
    PromptMessage,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from packages import generate, imported, manifest, tool
from server_fixture import exchange
from stubwright_runtime.server.core.content_blocks import encode_block
from stubwright_runtime.server.core.sanitizing import sanitize
from stubwright_runtime.server.handlers.content import embedded, link, text
from stubwright_runtime.server.handlers.returns import Reply
from stubwright_runtime.server.protocol.messages import encode_json, repair_unicode
from stubwright_runtime.values.sanitizing import SanitizeStats, clean

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

DIRTY = "a\x1b[31m\u202eb\x9b\x7f"
"""Eight characters to remove, between two letters."""


@pytest.mark.parametrize(
    ("dirty", "cleaned"),
    [
        ("tab\tline\r\nünïcode 😀 ‏rtl", "tab\tline\r\nünïcode 😀 ‏rtl"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x9b1mbold", "bold"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b(Bplain", "plain"),
        ("open \x1b]0;never closed", "open 0;never closed"),
        ("\x1b\x1b[m[31mx", "[31mx"),
        ("a\x00b\x08c\x7fd\x85e", "abcde"),
        ("user\u202etxt.exe\u2066x\u2069", "usertxt.exex"),
        ("half \ud83d, pair \ud83d\ude00", "half \ufffd, pair 😀"),
    ],
)
def test_clean(dirty: str, cleaned: str) -> None:
    assert clean(dirty) == cleaned


def test_whole_mends_strings_and_keys_and_leaves_the_rest() -> None:
    value = {"a": ["\x1b"]}
    assert repair_unicode(value)[0] is value
    assert repair_unicode({"\udc00": ["\ud800", 1, None]}) == ({"\ufffd": ["\ufffd", 1, None]}, 25)
    infinite = {"n": float("inf")}
    assert repair_unicode(infinite) == (infinite, None)


def test_the_mirror_parses_to_the_same_value_and_hides_nothing() -> None:
    value = {"s": "a\x1b[31m\u202e\x9b\x7f", "n": 2**53 + 1, "f": 1.0, "z": None}
    data, mirror = encode_json(value)
    assert data is value
    assert mirror == '{"s": "a\\u001b[31m\\u202e\\u009b\\u007f", "n": 9007199254740993, "f": 1.0, "z": null}'
    assert json.loads(mirror) == value
    assert encode_json(["\ud800"]) == (["\ufffd"], '["\ufffd"]')


def test_blocks_are_cleaned() -> None:
    assert encode_block(text("\x1b[1mx")) == {"type": "text", "text": "x"}
    assert encode_block(link("a:b", "n\x1b[m", title="t\u202e")) == {
        "type": "resource_link", "name": "n", "title": "t", "uri": "a:b"
    }  # fmt: skip
    assert encode_block(embedded("a:b", text="\x07x")) == {"type": "resource", "resource": {"uri": "a:b", "text": "x"}}


def test_broken_blocks_are_refused() -> None:
    with pytest.raises(ValueError, match="the data is not base64"):
        encode_block(ImageContent(type="image", data="@", mime_type="image/png"))
    with pytest.raises(ValueError, match="'wav' is not a MIME type"):
        encode_block(AudioContent(type="audio", data="", mime_type="wav"))
    with pytest.raises(ValueError, match="Unable to serialize unknown type"):
        encode_block(TextContent(type="text", text="", _meta={"n": object()}))


def test_every_string_of_a_block_is_cleaned() -> None:
    noted = Annotations(audience=["user"], last_modified=DIRTY)
    blocks: list[ContentBlock] = [
        TextContent(type="text", text=DIRTY, annotations=noted, _meta={DIRTY: [DIRTY]}),
        ImageContent(type="image", data="AAAA", mime_type="image/png", annotations=noted, _meta={"a": DIRTY}),
        ResourceLink(
            type="resource_link",
            uri=f"x:{CLEARED}",
            name=DIRTY,
            title=DIRTY,
            description=DIRTY,
            icons=[Icon(src=f"https://x/{DIRTY}", sizes=[DIRTY])],
            annotations=noted,
        ),
        EmbeddedResource(
            type="resource",
            resource=TextResourceContents(uri=f"x:{CLEARED}", text=DIRTY, _meta={"a": {"b": DIRTY}}),
            annotations=noted,
        ),
        EmbeddedResource(type="resource", resource=BlobResourceContents(uri=f"x:{CLEARED}", blob="AAAA")),
    ]
    for one in blocks:
        count = SanitizeStats()
        sent = json.dumps(encode_block(one, count=count), ensure_ascii=False)
        assert not any(character in sent for character in "\x1b\u202e\x9b\x7f")
        assert "\\u00" not in sent
        raw = json.dumps(encode_block(one, "none"), ensure_ascii=False)
        assert raw.count("\u202e") == count.strings  # each once
        assert count.characters == len(raw) - len(sent) - 5 * raw.count("\\u001b")  # which JSON writes in six
    assert encode_block(blocks[2])["uri"] == "x:ab"


CLEARED = "a\u202e\x84b"
"""What a URI may have and should not."""


@pytest.mark.parametrize("extent", ["text", "all", "none"])
def test_what_is_no_uri_and_no_type_is_refused(extent: Any) -> None:
    for uri in ("x:a\x1b[31m", "x:a b", "nowhere", "", "1:2"):
        with pytest.raises(ValueError, match="is not an absolute URI"):
            encode_block(ResourceLink(type="resource_link", uri=uri, name="n"), extent)
        with pytest.raises(ValueError, match="is not an absolute URI"):
            encode_block(EmbeddedResource(type="resource", resource=TextResourceContents(uri=uri, text="")), extent)
    for mime_type in ("text", "text/\x1b[31mplain", "text/pl\u202eain", "a/b; c"):
        with pytest.raises(ValueError, match="is not a MIME type"):
            encode_block(ResourceLink(type="resource_link", uri="x:a", name="n", mime_type=mime_type), extent)
        contents = BlobResourceContents(uri="x:a", blob="AAAA", mime_type=mime_type)
        with pytest.raises(ValueError, match="is not a MIME type"):
            encode_block(EmbeddedResource(type="resource", resource=contents), extent)


def test_values_are_cleaned_with_their_keys_and_their_mirror() -> None:
    count = SanitizeStats()
    value = {DIRTY: [DIRTY, {"n": 1.5, "z": None, "t": "tab\there \\u001b", "e": "\x08\x0c"}]}
    data, mirror = sanitize(value, count)
    assert data == {"ab": ["ab", {"n": 1.5, "z": None, "t": "tab\there \\u001b", "e": ""}]}
    assert json.loads(mirror) == data
    assert (count.strings, count.characters) == (3, 8 + 8 + 2)
    plain = {"a": ["\ttab \\u001b \\b", 1]}
    assert sanitize(plain)[0] is plain or sanitize(plain)[0] == plain
    assert clean("same", count) == "same"
    assert count.strings == 3


def test_what_is_clean_is_not_walked() -> None:
    """Its JSON is searched once, and the value is returned unchanged; only an unclean value is copied."""
    clean_value = {"rows": [{"name": "row", "text": "words"}]}
    assert sanitize(clean_value)[0] is clean_value
    assert sanitize({"rows": ["\u202e"]})[0] == {"rows": [""]}


# By the policy of a tool, over all ways


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


SCHEMA = {
    "type": "object",
    "properties": {"s": {"type": "string", "minLength": 3}},
    "required": ["s"],
    "additionalProperties": {"type": "string"},
}
EXTENTS = ("text", "all", "none")


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, ModuleType]]:
    """A package for each extent as the default of all; its tools have each as their own."""
    folder = tmp_path_factory.mktemp("hygiene")
    made = {}
    for extent in EXTENTS:
        tools = [tool("plain"), tool("data", outputSchema=SCHEMA)]
        tools += [tool(f"plain_{own}", stubwright={"policy": {"sanitize": own}}) for own in EXTENTS]
        tools += [tool(f"data_{own}", outputSchema=SCHEMA, stubwright={"policy": {"sanitize": own}}) for own in EXTENTS]
        value = manifest(
            tools,
            name=f"clean_{extent}",
            prompts=[
                {"name": "told"},
                {
                    "name": "filled",
                    "arguments": [{"name": "a"}],
                    "stubwright": {"messages": [{"text": "{{a}}"}]},
                },
            ],
            resources=[{"uri": "x://r", "name": "r"}],
            **({} if extent == "text" else {"policy": {"sanitize": extent}}),
        )
        made[extent] = generate(folder, value)
    with (
        imported(folder, made["text"]) as text_package,
        imported(folder, made["all"]) as all_package,
        imported(folder, made["none"]) as none_package,
    ):
        yield {"text": text_package, "all": all_package, "none": none_package}


def handlers() -> Any:
    noted = Annotations(last_modified=DIRTY)

    def plain(args: Any, ctx: Any) -> Any:
        return [
            TextContent(type="text", text=DIRTY, annotations=noted),
            ResourceLink(type="resource_link", uri=f"x:{CLEARED}", name=DIRTY),
        ]

    def data(args: Any, ctx: Any) -> Any:
        return {"s": f"{DIRTY}cd\ud800", DIRTY: DIRTY}

    methods = {name: plain if name.startswith("plain") else data for name in ("plain", "data")}
    methods |= {f"plain_{own}": plain for own in EXTENTS} | {f"data_{own}": data for own in EXTENTS}
    contents = [TextResourceContents(uri=f"x:{CLEARED}", text=DIRTY, _meta={"a": DIRTY}), DIRTY]
    return SimpleNamespace(
        **methods,
        prompt_told=lambda args, ctx: [PromptMessage(role="user", content=plain(None, None)[1]), DIRTY],
        read_r=lambda ctx: contents,
    )


@pytest.mark.anyio
@pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("default", EXTENTS)
async def test_structured_content_without_a_schema_is_cleaned_as_the_policy_has_it(
    packages: dict[str, ModuleType], era: str, default: str
) -> None:
    names = {"plain": default, **{f"plain_{own}": own for own in EXTENTS}}
    reply = Reply("said", structured={DIRTY: [DIRTY, "\ud800"]})
    own = SimpleNamespace(**{**vars(handlers()), **dict.fromkeys(names, lambda args, ctx: reply)})
    server = packages[default].build_server(own)
    for name, extent in names.items():
        [result] = await exchange(server, era, ("tools/call", {"name": name}))
        word = "ab" if extent == "all" else DIRTY
        assert result["structuredContent"] == {word: [word, "\ufffd"]}, name


@pytest.mark.anyio
@pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("default", EXTENTS)
async def test_results_are_cleaned_as_the_policy_has_it(
    packages: dict[str, ModuleType], era: str, default: str
) -> None:
    server = packages[default].build_server(handlers())
    for name, extent in [("", default), *((f"_{own}", own) for own in EXTENTS)]:
        said, data = await exchange(
            server, era, ("tools/call", {"name": f"plain{name}"}), ("tools/call", {"name": f"data{name}"})
        )
        text, resource = said["content"]
        string, uri = ("ab", "x:ab") if extent != "none" else (DIRTY, f"x:{CLEARED}")
        assert text == {"type": "text", "text": string, "annotations": {"lastModified": string}}
        assert (resource["uri"], resource["name"]) == (uri, string)
        word = "ab" if extent == "all" else DIRTY
        assert data["structuredContent"] == {"s": f"{word}cd\ufffd", word: word}
        mirror = data["content"][0]["text"]
        assert json.loads(mirror) == data["structuredContent"]
        assert "\u202e" not in mirror
    string = DIRTY if default == "none" else "ab"
    told, filled, read = await exchange(
        server,
        era,
        ("prompts/get", {"name": "told"}),
        ("prompts/get", {"name": "filled", "arguments": {"a": DIRTY}}),
        ("resources/read", {"uri": "x://r"}),
    )
    assert [one["content"].get("text", one["content"].get("name")) for one in told["messages"]] == [string, string]
    assert filled["messages"][0]["content"]["text"] == string
    first, second = read["contents"]
    assert (first["text"], first["_meta"]["a"], second["text"]) == (string, string, string)
    assert first["uri"] == ("x:ab" if default != "none" else f"x:{CLEARED}")


@pytest.mark.anyio
async def test_what_is_too_short_when_it_is_clean_breaks_its_schema(
    packages: dict[str, ModuleType], caplog: pytest.LogCaptureFixture
) -> None:
    answers = handlers()
    answers.data = lambda args, ctx: {"s": "a\x1b\x1b\x1b"}
    async with mcp.Client(packages["all"].build_server(answers)) as made:
        assert (await made.call_tool("data")).is_error
    assert 's: expected at least 3 characters, got the string "a"' in caplog.text


@pytest.mark.anyio
async def test_what_is_no_uri_is_told_in_the_log(
    packages: dict[str, ModuleType], caplog: pytest.LogCaptureFixture
) -> None:
    answers = handlers()
    answers.plain = lambda args, ctx: ResourceLink(type="resource_link", uri="x:a\x1b[31m", name="n")
    answers.read_r = lambda ctx: TextResourceContents(uri="x:y", text="", mime_type="no type")
    async with mcp.Client(packages["text"].build_server(answers)) as made:
        result = await made.call_tool("plain")
        assert result.is_error
        assert "Internal error in plain" in str(result.content)
        with pytest.raises(mcp.MCPError, match="Internal error in read_r"):
            await made.read_resource("x://r")
    assert "is not an absolute URI" in caplog.text
    assert "'no type' is not a MIME type" in caplog.text
