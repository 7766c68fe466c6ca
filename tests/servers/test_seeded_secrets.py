"""Secrets in tokens, arguments, exceptions, responses and claims never appear in any output.

The outputs of a server are its sinks; each is a text, collected below. A new sink (a line of an audit, a span) is one
more line in `_sinks`, and is then searched like the others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import httpx2
import mcp
import mcp_types
import pytest
from mcp.client.stdio import StdioServerParameters, stdio_client

import forked
from oidc import free_port, processing, standing_in
from packages import generate, manifest, tool
from signing import Key, claims

SEEDS = {
    "argument": "seed-argument-5d1c0a",
    "nested argument": "seed-nested-88ab13",
    "exception": "seed-exception-1f77e2",
    "answer": "seed-answer-c0ffee",
    "claim": "seed-claim-9a3d41",
    "token": "seed-token-0b5e7f",
}
SHOWN: Mapping[str, frozenset[str]] = {"log": frozenset({"exception"})}
"""Permitted seeds: the reason of an internal error is in the log, and in no other sink."""

ASKED = {"secret": {"message": "Which?", "schema": {"type": "object", "properties": {"word": {"type": "string"}}}}}
PROPERTIES = {
    "key": {"type": "string"},
    "login": {"type": "object", "properties": {"password": {"type": "string", "maxLength": 30}}},
    "how": {"type": "string"},
}
REDACT = ["/key", "/login/password"]


def _tool(name: str, **policy: Any) -> dict[str, Any]:
    return tool(name, PROPERTIES, stubwright={"policy": {"redact": REDACT, **policy}, "ask": ASKED})


TOOLS = [
    _tool("run", scopes=["read"]),
    _tool("hidden", scopes=["admin"]),
    _tool("rare", rateLimit="1/hour"),
    _tool("small", maxArgumentBytes=16),
    _tool("short", maxResultBytes=16),
    _tool("quick", timeout="50ms"),
    _tool("sure", confirm=True),
]

HANDLERS = f"""
import asyncio, logging, pathlib
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

provider = TracerProvider()
spans = pathlib.Path(__file__).with_name("spans").open("a", buffering=1)
provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=spans)))
trace.set_tracer_provider(provider)

class Handlers:
    async def run(self, args, ctx):
        logging.getLogger("handlers").debug("called with %r by %s", args, ctx.principal)
        if args.how == "raises":
            raise RuntimeError("{SEEDS["exception"]} with " + args.key + " and " + repr(args))
        if args.how == "asks":
            answer = await ctx.ask.secret()
            logging.getLogger("handlers").debug("answered")
            return "answered"
        if args.how == "waits":
            await asyncio.sleep(5)
        return "done"

    hidden = rare = small = short = quick = sure = run
"""


class Sown:
    """A server in a separate process, an issuer, and the responses so far."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.key = Key("one")
        self.port = free_port()
        self.issuer = f"http://127.0.0.1:{self.port}"
        self.audience = "http://127.0.0.1/mcp"
        self.tokens: list[str] = []
        self.results: list[str] = []
        auth = {"issuer": self.issuer, "audience": self.audience, "requiredScopes": ["mcp"], "onMissing": "hide"}
        value = manifest(TOOLS, name="sown", auth=auth, audit={"arguments": True})
        generate(folder, value)
        (folder / "sown_handlers.py").write_text(HANDLERS)
        (folder / "sown.json").write_text(json.dumps(value))

    def token(self, *, kid: str = "one", **more: Any) -> str:
        """Return a token with seeds, whose signature must not appear, either."""
        mine = {"scope": "mcp read", "jti": SEEDS["token"], "email": SEEDS["claim"], **more}
        said = {**claims(self.issuer, self.audience), **mine}
        self.tokens.append(self.key.sign(said, kid=kid))
        return self.tokens[-1]

    def patterns(self) -> dict[str, list[str]]:
        """What to look for: the seeds, and each part of each token."""
        parts = [part for token in self.tokens for part in token.split(".")[1:]]
        return {**{name: [seed] for name, seed in SEEDS.items()}, "signed token": parts}

    def took(self, result: object) -> None:
        self.results.append(result.model_dump_json() if hasattr(result, "model_dump_json") else str(result))


async def _use(sown: Sown, client: mcp.Client) -> None:
    """Calls that end in each way."""
    arguments = {"key": SEEDS["argument"], "login": {"password": SEEDS["nested argument"]}}
    for name in ("run", "hidden", "nowhere", "rare", "rare", "small", "short", "quick", "sure"):
        for how in ("done", "raises", "asks", "waits") if name in ("run", "quick") else ("done",):
            with suppress(TimeoutError), anyio.fail_after(0.4):
                try:
                    sown.took(await client.call_tool(name, {**arguments, "how": how}))
                except mcp.MCPError as error:
                    sown.took(f"{error.code} {error.message} {error.data}")
    wrong = {"key": [SEEDS["argument"]], "login": {"password": SEEDS["nested argument"] * 3}, "how": "done"}
    sown.took(await client.call_tool("run", wrong))
    sown.took(await client.list_tools())


async def _answer(context: Any, params: Any) -> mcp_types.ElicitResult:
    return mcp_types.ElicitResult(action="accept", content={"word": SEEDS["answer"], "confirm": True})


def _refused(sown: Sown, url: str) -> None:
    """Requests that do not get in, or hardly."""
    good, late = sown.token(), sown.token(exp=1)
    for token, address in (
        (late, url),
        (sown.token(kid="another"), url),
        (sown.token(aud="http://127.0.0.1:1/other"), url),
        (sown.token(scope="none"), url),
        (f"{good}x", url),
        (good[:-9], f"{url}?access_token={good}"),
        (good, f"{url}/nowhere?token={good}"),
        (good, url),
    ):
        answer = httpx2.post(address, headers={"Authorization": f"Bearer {token}"}, content=good, timeout=20)
        sown.took(f"{answer.status_code} {dict(answer.headers)} {answer.text}")
    answer = httpx2.post(url, headers=[("Authorization", f"Bearer {good}"), ("Authorization", f"Bearer {late}")])
    sown.took(f"{answer.status_code} {dict(answer.headers)} {answer.text}")


@contextmanager
def _sinks(sown: Sown, log: Path) -> Iterator[dict[str, str]]:
    """Return all output of a server after its end."""
    pages = sown.folder / "pages"
    done = forked.run(["docs", str(sown.folder / "sown.json"), "-o", str(pages)], sown.folder)
    assert done.returncode == 0, done.stderr
    yield {
        "results": "\n".join(sown.results),
        "log": log.read_text("utf-8"),
        "audit": (sown.folder / "audit").read_text("utf-8"),
        "spans": (sown.folder / "spans").read_text("utf-8"),
        "docs": "\n".join(page.read_text("utf-8") for page in pages.rglob("*") if page.is_file()),
    }


def _found(sown: Sown, sinks: Mapping[str, str]) -> list[str]:
    return [
        f"{name} in {sink}: …{text[max(0, at - 200) : at + 80]}…"
        for sink, text in sinks.items()
        for name, seeds in sown.patterns().items()
        for seed in seeds
        if name not in SHOWN.get(sink, ()) and (at := text.find(seed)) >= 0
    ]


@pytest.mark.long
def test_nothing_that_is_sown_comes_up_over_http(tmp_path: Path) -> None:
    sown, log = Sown(tmp_path), tmp_path / "log"
    with (
        processing("sown_mcp", tmp_path, log, "sown_handlers:Handlers", "--audit", "audit") as url,
        standing_in(sown.port, sown.key),
    ):
        _refused(sown, url)
        anyio.run(_over_http, sown, url)
    with _sinks(sown, log) as sinks:
        assert all(sinks.values())
        _check_that_it_went_on(sown, sinks)
        assert "?[query]" in sinks["log"]
        assert _found(sown, sinks) == []


async def _over_http(sown: Sown, url: str) -> None:
    from mcp.client.streamable_http import streamable_http_client

    modes: tuple[Any, ...] = ("auto", "legacy")
    for mode in modes:
        headers = {"Authorization": f"Bearer {sown.token()}"}
        async with httpx2.AsyncClient(headers=headers, timeout=30) as network:
            target = streamable_http_client(url, http_client=network)
            async with mcp.Client(target, mode=mode, elicitation_callback=_answer) as client:
                await _use(sown, client)


def test_nothing_that_is_sown_comes_up_over_stdio(tmp_path: Path) -> None:
    sown, log = Sown(tmp_path), tmp_path / "log"
    command = [*forked.interpreter(), "-m", "sown_mcp", "--handlers", "sown_handlers:Handlers", "--log-level", "debug"]
    process = StdioServerParameters(
        command=command[0],
        args=[*command[1:], "--scope", "read", "--audit", str(tmp_path / "audit")],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
    )

    async def use(errors: Any) -> None:
        modes: tuple[Any, ...] = ("auto", "legacy")
        for mode in modes:
            async with mcp.Client(
                stdio_client(process, errlog=errors), mode=mode, elicitation_callback=_answer
            ) as client:
                await _use(sown, client)

    with log.open("w") as errors:
        anyio.run(use, errors)
    with _sinks(sown, log) as sinks:
        _check_that_it_went_on(sown, sinks)
        assert _found(sown, sinks) == []


def _check_that_it_went_on(sown: Sown, sinks: Mapping[str, str]) -> None:
    """That all of it happened whose traces are looked for."""
    for text in (
        "Internal error",
        "Unknown tool",
        "; the limit is reached. Try again",
        "are too large",
        "is too large",
        "took longer",
        "Invalid arguments",
        "answered",
        "done",
    ):
        assert text in sinks["results"], text
    for outcome in ("completed", "failed", "limited", "invalid", "denied"):
        assert f'"outcome":"{outcome}"' in sinks["audit"], outcome
    for sink in ("audit", "spans"):
        assert "[redacted]" in sinks[sink], sink
    assert '"name": "tools/call run"' in sinks["spans"]
    assert SEEDS["exception"] in sinks["log"]
    assert "[redacted]" in sinks["log"]
    assert re.search(r"handlers: called with", sinks["log"])
