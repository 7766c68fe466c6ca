"""The direct path: messages are answered without the SDK, on standard input all of them."""
