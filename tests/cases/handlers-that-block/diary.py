import asyncio
import subprocess
import time as t
from urllib.request import urlopen

import requests
from diary_mcp import DiaryHandlers


class Diary(DiaryHandlers):
    async def write(self, args, ctx) -> str:
        t.sleep(1)
        page = requests.get("https://example.com/é")
        subprocess.run(["true"])
        await asyncio.to_thread(requests.get, "https://example.com")
        return await self._fetch() + page.text

    def read(self, args, ctx) -> str:
        t.sleep(1)
        return urlopen("https://example.com").read().decode()

    async def _fetch(self) -> str:
        return urlopen("https://example.com").read().decode()
