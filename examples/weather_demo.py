"""Start the weather server over stdio, call it through its typed client, and print inputs and outputs."""

from __future__ import annotations

import asyncio
import os
import sys

from mcp_types import TextContent, TextResourceContents

from weather_mcp import ToolFailed, WeatherClient

SERVER = [sys.executable, "-m", "weather_mcp"]


async def main() -> None:
    """Call tools (one of which fails), read a resource, and get a prompt."""
    print("starting:", " ".join(["python", *SERVER[1:]]))
    async with WeatherClient.connect(SERVER, env=dict(os.environ)) as weather:
        print("\n> get_weather(location='Paris')")
        report = await weather.get_weather(location="Paris")
        print(f"{report.temperature} °C, {report.conditions}, {report.humidity} % humidity")

        print("\n> get_forecast(location='Oslo', days=2)")
        forecast = await weather.get_forecast(location="Oslo", days=2)
        for day in forecast.days:
            print(f"{day.date}: {day.low} to {day.high} °C, {day.conditions}")

        print("\n> get_weather(location='Atlantis')")
        try:
            await weather.get_weather(location="Atlantis")
        except ToolFailed as error:
            print("the tool failed:", error)

        print("\n> read_current(city='Lisbon')")
        for contents in await weather.read_current(city="Lisbon"):
            print(contents.text if isinstance(contents, TextResourceContents) else contents.blob)

        print("\n> prompt_plan_day(city='Nairobi')")
        for message in await weather.prompt_plan_day(city="Nairobi"):
            print(f"{message.role}: {message.content.text if isinstance(message.content, TextContent) else '…'}")


asyncio.run(main())
