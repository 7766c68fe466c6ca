"""A generated server as a process that is replaced, again and again, while its address stays: for `stubwright dev`."""
