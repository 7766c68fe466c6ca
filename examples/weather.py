"""The business logic of the weather server; everything else is generated from `specs/weather.yaml`.

Its reports come from a small table of stations, so it runs anywhere.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import date, timedelta

from weather_mcp import (
    Context,
    GetForecastInput,
    GetForecastOutput,
    GetForecastOutputDays,
    GetWeatherInput,
    GetWeatherOutput,
    ListStationsInput,
    ReadCurrentParams,
    ToolError,
    WeatherHandlers,
)


@dataclass(frozen=True, slots=True)
class Station:
    """A station's report: degrees Celsius, conditions, and relative humidity in percent."""

    celsius: float
    conditions: str
    humidity: int


STATIONS = {
    "Lisbon": Station(24.0, "Sunny", 48),
    "Nairobi": Station(19.5, "Light rain", 81),
    "Oslo": Station(-3.0, "Snow", 90),
    "Paris": Station(22.5, "Partly cloudy", 65),
}


class Weather(WeatherHandlers):
    """Looks up reports in the table."""

    async def get_weather(self, args: GetWeatherInput, ctx: Context) -> GetWeatherOutput:
        """Return the station's report in the requested units."""
        station = _station(args.location)
        imperial = args.units == "imperial"
        return GetWeatherOutput(
            temperature=station.celsius * 9 / 5 + 32 if imperial else station.celsius,
            conditions=station.conditions,
            humidity=station.humidity,
        )

    async def get_forecast(self, args: GetForecastInput, ctx: Context) -> GetForecastOutput:
        """Return the station's report for each day, a little colder every day."""
        station = _station(args.location)
        days = [
            GetForecastOutputDays(
                date=(date(2026, 7, 28) + timedelta(days=day)).isoformat(),
                low=station.celsius - 5 - day,
                high=station.celsius - day,
                conditions=station.conditions,
            )
            for day in range(args.days)
        ]
        return GetForecastOutput(days=days)

    def list_stations(self, args: ListStationsInput, ctx: Context) -> str:
        """Return the stations. A plain `def` runs in a worker thread."""
        return "\n".join(STATIONS)

    async def read_current(self, args: ReadCurrentParams, ctx: Context) -> str | None:
        """Return the station's report as JSON, or `None` if the station does not exist."""
        station = STATIONS.get(args.city)
        return None if station is None else json.dumps(asdict(station))


def _station(location: str) -> Station:
    station = STATIONS.get(location)
    if station is None:
        raise ToolError(f"No station reports from {location}; there are stations in {', '.join(STATIONS)}.")
    return station
