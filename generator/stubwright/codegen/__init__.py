"""What Python classes a schema gives: its shapes, their classes, and what types cannot say in words."""
