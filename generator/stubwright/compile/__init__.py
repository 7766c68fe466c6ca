"""The compiler: from the text of a manifest to the IR, and from the IR to the files of a package."""
