"""The parts that handler code uses and implements: content blocks, messages, return types and the lifespan."""
