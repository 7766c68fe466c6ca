"""The verb for people who write a server: it runs beside the editor, and shows the served version."""
