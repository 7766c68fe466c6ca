"""Call the weather server that `stubwright dev specs/weather.yaml` serves."""

import asyncio

from weather_mcp import WeatherClient


async def main() -> None:
    async with WeatherClient.connect("http://127.0.0.1:8000/mcp") as weather:
        report = await weather.get_weather(location="Paris")
        print(report.temperature)


if __name__ == "__main__":
    asyncio.run(main())
