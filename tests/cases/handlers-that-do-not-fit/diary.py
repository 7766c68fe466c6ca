from diary_mcp import Context, DiaryHandlers, OldInput, WriteInput


class Diary(DiaryHandlers):
    def write(self, args: WriteInput) -> str:
        return "written"

    async def read(self, args: OldInput, ctx: Context) -> None: ...

    def erase(self, args: OldInput, ctx: Context) -> str: ...
