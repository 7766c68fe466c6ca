"""Calls servers and shows their lists on the command line: parses arguments and shows results and questions."""
