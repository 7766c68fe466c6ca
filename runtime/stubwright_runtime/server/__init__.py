"""What generated servers run on."""
