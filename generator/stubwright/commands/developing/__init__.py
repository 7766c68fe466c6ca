"""The verb for people who write a server: it runs next to the editor, and shows the served version."""
