"""The project on disk: its configuration, its lock, and all that is read and written."""
