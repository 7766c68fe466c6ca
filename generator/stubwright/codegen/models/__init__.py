"""Models: schemas to types, classes, and the text of their modules."""
