"""The handlers of `specs/everything/`: one for each fixture in MCP's official conformance suite that needs code.

A question is an `await` like any other, in every protocol revision. The handler of a tool without arguments takes
`object`, because it ignores them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable
from pathlib import Path
from typing import TypeVar

from mcp import MCPError
from mcp_types import INTERNAL_ERROR, ContentBlock, CreateMessageResult, TextContent
from pydantic import BaseModel

from everything_mcp import (
    Cancelled,
    ConfirmDeleteContext,
    ConfirmDeleteInput,
    Context,
    Declined,
    EverythingHandlers,
    GreetInput,
    JsonSchema202012ToolInput,
    MultiInputContext,
    PromptTestInputRequiredResultPromptContext,
    ReadTemplateDataParams,
    SlowComputeInput,
    TestElicitationContext,
    TestElicitationInput,
    TestElicitationSep1034DefaultsContext,
    TestElicitationSep1330EnumsContext,
    TestHeaderParameterInput,
    TestInputRequiredResultCapabilitiesContext,
    TestInputRequiredResultElicitationContext,
    TestInputRequiredResultMultipleInputsContext,
    TestInputRequiredResultMultiRoundContext,
    TestInputRequiredResultRequestStateContext,
    TestInputRequiredResultTamperedStateContext,
    TestSamplingInput,
    TestStreamingElicitationContext,
    TestToolWithTaskContext,
    ToolError,
    audio,
    embedded,
    image,
    text,
)

T = TypeVar("T", bound=BaseModel)

FILES = Path(__file__).parents[1] / "specs" / "everything" / "files"
PAUSE = 0.05  # seconds between notifications


class Everything(EverythingHandlers):
    """Implements the suite's documentation, with its messages."""

    # Results

    async def test_simple_text(self, args: object, ctx: Context) -> str:
        return "This is a simple text response for testing."

    def test_image_content(self, args: object, ctx: Context) -> ContentBlock:
        return image(FILES / "pixel.png")

    def test_audio_content(self, args: object, ctx: Context) -> ContentBlock:
        return audio(FILES / "silence.wav", "audio/wav")

    async def test_embedded_resource(self, args: object, ctx: Context) -> ContentBlock:
        content = "This is an embedded resource content."
        return embedded("test://embedded-resource", text=content, mime_type="text/plain")

    def test_multiple_content_types(self, args: object, ctx: Context) -> list[ContentBlock]:
        data = json.dumps({"test": "data", "value": 123})
        return [
            text("Multiple content types test:"),
            image(FILES / "pixel.png"),
            embedded("test://mixed-content-resource", text=data, mime_type="application/json"),
        ]

    async def test_error_handling(self, args: object, ctx: Context) -> str:
        raise ToolError("This tool intentionally returns an error for testing")

    # Notifications during a call

    async def test_tool_with_progress(self, args: object, ctx: Context) -> str:
        for percent in (0, 50, 100):
            await ctx.progress(percent, 100)
            await asyncio.sleep(PAUSE)
        return "Progress was reported."

    async def test_tool_with_logging(self, args: object, ctx: Context) -> str:
        for message in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            await ctx.log("info", message)
            await asyncio.sleep(PAUSE)
        return "Messages were sent."

    async def test_logging_tool(self, args: object, ctx: Context) -> str:
        await ctx.log("info", "Somebody asked for this message.")
        return "A message was sent, if you asked for messages."

    async def test_reconnection(self, args: object, ctx: Context) -> str:
        await ctx.release_stream()
        await asyncio.sleep(PAUSE)
        return "The stream was closed on the way."

    # Questions

    async def test_elicitation(self, args: TestElicitationInput, ctx: TestElicitationContext) -> str:
        return f"User response: {outcome(await ctx.ask.user(args.message))}"

    async def test_elicitation_sep1034_defaults(self, args: object, ctx: TestElicitationSep1034DefaultsContext) -> str:
        return f"Elicitation completed: {outcome(await ctx.ask.profile())}"

    async def test_elicitation_sep1330_enums(self, args: object, ctx: TestElicitationSep1330EnumsContext) -> str:
        return f"Elicitation completed: {outcome(await ctx.ask.options())}"

    async def test_streaming_elicitation(self, args: object, ctx: TestStreamingElicitationContext) -> str:
        await ctx.progress(1, 2, "Asking")
        return f"Elicitation completed: {outcome(await ctx.ask.confirm())}"

    async def test_sampling(self, args: TestSamplingInput, ctx: Context) -> str:
        return f"LLM response: {said(await ctx.sample(args.prompt, max_tokens=100))}"

    async def test_missing_capability(self, args: object, ctx: Context) -> str:
        return said(await ctx.sample("Say hello", max_tokens=50))

    # Questions between two calls

    async def test_input_required_result_elicitation(
        self, args: object, ctx: TestInputRequiredResultElicitationContext
    ) -> str:
        return f"Hello, {given(await ctx.ask.user_name()).name}!"

    async def test_input_required_result_sampling(self, args: object, ctx: Context) -> str:
        return said(await ctx.sample("What is the capital of France?", max_tokens=100, key="capital_question"))

    async def test_input_required_result_list_roots(self, args: object, ctx: Context) -> str:
        return "\n".join(str(root.uri) for root in await ctx.roots(key="client_roots"))

    async def test_input_required_result_request_state(
        self, args: object, ctx: TestInputRequiredResultRequestStateContext
    ) -> str:
        return f"state-ok: {outcome(await ctx.ask.confirm())}"

    async def test_input_required_result_multiple_inputs(
        self, args: object, ctx: TestInputRequiredResultMultipleInputsContext
    ) -> str:
        user, greeting, roots = await asyncio.gather(
            ctx.ask.user_name(),
            ctx.sample("Generate a greeting", max_tokens=50, key="greeting"),
            ctx.roots(key="client_roots"),
        )
        return f"{said(greeting)} {given(user).name} has {len(roots)} root(s)."

    async def test_input_required_result_multi_round(
        self, args: object, ctx: TestInputRequiredResultMultiRoundContext
    ) -> str:
        name = given(await ctx.ask.step1()).name
        color = given(await ctx.ask.step2()).color
        return f"{name} likes {color}."

    async def test_input_required_result_tampered_state(
        self, args: object, ctx: TestInputRequiredResultTamperedStateContext
    ) -> str:
        return f"The state is as it was: {outcome(await ctx.ask.confirm())}"

    async def test_input_required_result_capabilities(
        self, args: object, ctx: TestInputRequiredResultCapabilitiesContext
    ) -> str:
        questions: list[Awaitable[object]] = []
        if ctx.can("elicitation"):
            questions.append(ctx.ask.user_name())
        if ctx.can("sampling"):
            questions.append(ctx.sample("Generate a greeting", max_tokens=50))
        answers = await asyncio.gather(*questions)
        return f"{len(answers)} answer(s)."

    async def prompt_test_input_required_result_prompt(
        self, args: object, ctx: PromptTestInputRequiredResultPromptContext
    ) -> str:
        answer = await ctx.ask.user_context()
        return "Do without context." if isinstance(answer, Declined | Cancelled) else f"Context: {answer.context}"

    # Tasks

    async def greet(self, args: GreetInput, ctx: Context) -> str:
        return f"Hello, {args.name}!"

    async def slow_compute(self, args: SlowComputeInput, ctx: Context) -> str:
        await ctx.progress(0, args.seconds, args.label)
        await asyncio.sleep(args.seconds)
        return f"Computed for {args.seconds:g} s."

    async def failing_job(self, args: object, ctx: Context) -> str:
        await asyncio.sleep(PAUSE)
        raise ToolError("This job always fails.")

    async def protocol_error_job(self, args: object, ctx: Context) -> str:
        raise MCPError(INTERNAL_ERROR, "This job always breaks down.")

    async def confirm_delete(self, args: ConfirmDeleteInput, ctx: ConfirmDeleteContext) -> str:
        is_wanted = given(await ctx.ask.confirm(f"Delete {args.filename}?")).confirm
        return f"{args.filename} is {'gone' if is_wanted else 'still there'}."

    async def multi_input(self, args: object, ctx: MultiInputContext) -> str:
        name, pet = await asyncio.gather(ctx.ask.name(), ctx.ask.pet())
        return f"{given(name).name} and {given(pet).name}."

    async def test_tool_with_task(self, args: object, ctx: TestToolWithTaskContext) -> str:
        return f"Hello, {given(await ctx.ask.user_name()).name}!"

    # Subscriptions

    async def test_trigger_tool_change(self, args: object, ctx: Context) -> str:
        await ctx.tools.changed()
        return "Subscribers were told."

    async def test_trigger_prompt_change(self, args: object, ctx: Context) -> str:
        await ctx.prompts.changed()
        return "Subscribers were told."

    # Input schemas and resource templates

    async def json_schema_2020_12_tool(self, args: JsonSchema202012ToolInput, ctx: Context) -> str:
        return args.model_dump_json()

    async def test_header_parameter(self, args: TestHeaderParameterInput, ctx: Context) -> str:
        return f"The region is {args.region}."

    async def read_template_data(self, args: ReadTemplateDataParams, ctx: Context) -> str:
        return json.dumps({"id": args.id, "templateTest": True, "data": f"Data for ID: {args.id}"})


def given(answer: T | Declined | Cancelled) -> T:
    """The user's answer. Without one, the call fails."""
    if isinstance(answer, Declined | Cancelled):
        raise ToolError("The user gave no answer.")
    return answer


def outcome(answer: BaseModel | Declined | Cancelled) -> str:
    """The user's action and answer, in the suite's format."""
    if isinstance(answer, Declined | Cancelled):
        return f"action={'decline' if isinstance(answer, Declined) else 'cancel'}, content={{}}"
    return f"action=accept, content={answer.model_dump_json()}"


def said(result: CreateMessageResult) -> str:
    """The text from the caller's model."""
    return result.content.text if isinstance(result.content, TextContent) else f"({result.content.type})"
