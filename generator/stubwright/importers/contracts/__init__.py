"""Contracts: the lists of a server, as a file that people review, with the way back to the server.

The file is a manifest. It begins with a digest of itself, and holds no secret.
"""
