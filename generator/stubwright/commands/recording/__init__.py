"""The verbs for conversations with a server: writing them down, and answering from them."""
