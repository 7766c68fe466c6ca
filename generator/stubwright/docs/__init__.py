"""`stubwright docs`: one self-contained HTML page for each server."""
