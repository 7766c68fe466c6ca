"""The compiler: lowers a manifest to the IR and renders the IR as the files of a package."""
