"""From a manifest's text to the IR, and from there to the files of its package."""
