"""The page of `stubwright dev`, which calls the server's tools and shows the run's events."""
