"""Start the weather server over stdio and call it through its typed client, showing what went in and what came out."""

from __future__ import annotations

import asyncio
import os
import sys

from weather_mcp import ToolFailed, WeatherClient

SERVER = [sys.executable, "-m", "weather_mcp"]


async def main() -> None:
    """Make three calls: one that succeeds, one with several results, and one that fails."""
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


asyncio.run(main())
