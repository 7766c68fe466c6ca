"""The page next to the server of `stubwright dev`: try its tools, and see what happens in it."""
