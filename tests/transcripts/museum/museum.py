"""The handlers of `manifest.yaml`. A pause after a notification keeps it before the answer."""

from __future__ import annotations

import asyncio
from pathlib import Path

from mcp_types import ContentBlock, PromptMessage, TextContent
from museum_mcp import (
    Cancelled,
    Completing,
    Context,
    Declined,
    DescribeInput,
    ListRoomsOutput,
    MeasureInput,
    MeasureOutput,
    MuseumHandlers,
    OrderContext,
    ReadRoomParams,
    Reply,
    ShowInput,
    SignContext,
    ToolError,
    assistant,
    audio,
    embedded,
    image,
    link,
    text,
    user,
)

FILES = Path(__file__).parent
PAUSE = 0.1


class Museum(MuseumHandlers):
    async def describe(self, args: DescribeInput, ctx: Context) -> str:
        return f"The {args.room} is dusty."

    async def measure(self, args: MeasureInput, ctx: Context) -> Reply[MeasureOutput]:
        plan = link("museum://plan", name="plan")
        return Reply(MeasureOutput(metres=4.5, note=None), content=[plan])

    async def list_rooms(self, args: object, ctx: Context) -> ListRoomsOutput:
        return ListRoomsOutput(["hall", "attic"])

    async def show(self, args: ShowInput, ctx: Context) -> list[ContentBlock]:
        return [
            text("Look:"),
            image(FILES / "pixel.png"),
            audio(FILES / "silence.wav"),
            link(f"museum://rooms/{args.room}", name=args.room, title="The room", mime_type="text/plain"),
            link("museum://plan", name="plan"),
            embedded("museum://label", text="A pot.", mime_type="text/plain"),
        ]

    async def unlock(self, args: object, ctx: Context) -> str:
        raise ToolError("The key is lost.")

    async def walk(self, args: object, ctx: Context) -> str:
        await ctx.progress(1, 2, "In the hall")
        await ctx.log("debug", "The floor creaks.")
        await ctx.log("info", {"room": "hall"}, "steps")
        await ctx.log("warning", "Mind your head.")
        await ctx.progress(2, 2)
        return "We are in the attic."

    async def sign(self, args: object, ctx: SignContext) -> str:
        answer = await ctx.ask.name()
        return "Nobody signed." if isinstance(answer, Declined | Cancelled) else f"Signed: {answer.name}."

    async def order(self, args: object, ctx: OrderContext) -> str:
        souvenir = await ctx.ask.souvenir()
        rooms = await ctx.ask.rooms()
        return f"{souvenir!r}, {rooms!r}"

    async def guide(self, args: object, ctx: Context) -> str:
        roots = await ctx.roots()
        story = await ctx.sample(f"Tell a story about {roots[0].uri}.", max_tokens=100, system="You are a guide.")
        return story.content.text if isinstance(story.content, TextContent) else "(no story)"

    async def rearrange(self, args: object, ctx: Context) -> str:
        await ctx.resources.updated("museum://plan")
        await ctx.tools.disable("unlock")
        await ctx.prompts.changed()
        await ctx.resources.changed()
        await asyncio.sleep(PAUSE)
        return "Everything is somewhere else."

    async def read_room(self, args: ReadRoomParams, ctx: Context) -> str | None:
        return None if args.room == "cellar" else f"There is a pot in the {args.room}."

    async def prompt_souvenirs(self, args: object, ctx: Context) -> list[PromptMessage]:
        return [user(link("museum://picture", name="picture")), assistant(image(FILES / "pixel.png"))]

    async def complete_prompt_tour(self, args: Completing, ctx: Context) -> list[str]:
        return [f"{tone} in the {args.given.get('room', 'house')}" for tone in ("solemn", "merry")]
