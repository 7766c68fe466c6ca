"""Calling and listing a server from the command line: words to arguments, results and questions to a terminal."""
