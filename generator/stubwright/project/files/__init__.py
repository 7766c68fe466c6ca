"""Files on disk: reading and writing them, the lock, and the user's cache folder."""
