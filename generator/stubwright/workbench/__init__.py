"""The `stubwright dev` page, which calls the server's tools and shows its events."""
