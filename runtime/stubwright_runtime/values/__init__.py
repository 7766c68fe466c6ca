"""JSON values and text, and the checks that both ends of a connection make."""
