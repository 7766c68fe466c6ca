"""The project on disk: its configuration, its lock, and its files."""
