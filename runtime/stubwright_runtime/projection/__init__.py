"""Converts tools to the formats of models' APIs, and the models' calls back."""
