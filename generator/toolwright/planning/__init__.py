"""From the IR to pages: what files a package has, and what each template is given."""
