from weather_mcp import WeatherHandlers


class Weather(WeatherHandlers): ...
