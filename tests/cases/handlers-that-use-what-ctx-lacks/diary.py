from diary_mcp import Context, DiaryHandlers, EraseInput, ReadInput, WriteContext, WriteInput


class OwnContext(Context): ...


class Diary(DiaryHandlers):
    async def write(self, args: WriteInput, ctx: WriteContext) -> str:
        await ctx.ask.mood()
        return ctx.sesion.text + ctx.handles

    async def read(self, args: ReadInput, ctx) -> str:
        context = ctx
        await context.sampel("x")
        await context.ask.mood()
        if hasattr(ctx, "elicit"):
            ctx.elicit()
        getattr(ctx, "gone")
        return ctx.__class__.__name__ + "é" + ctx.user

    @staticmethod
    async def erase(args: EraseInput, ctx: Context) -> str:
        await told(ctx)
        return await ctx.confirm("Sure?")


async def told(ctx: "Context") -> None:
    await ctx.progres(1)
    await ctx.ask.mood()


async def asked(own: OwnContext, anything, ctx: WriteContext) -> None:
    await own.whatever()
    await anything.whatever()
    ctx = own
    await ctx.whatever()
