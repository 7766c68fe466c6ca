"""What runs tasks: this process, or workers that share a Redis stream."""
