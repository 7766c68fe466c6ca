"""What generated packages run on: ordinary modules, copied into each package as they are."""
