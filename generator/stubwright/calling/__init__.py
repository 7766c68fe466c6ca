"""Calls and lists servers from the command line: parses arguments, and shows results and questions."""
