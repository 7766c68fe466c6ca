"""What generated clients run on."""
