"""Running handlers: threads, slots, cancellation."""
