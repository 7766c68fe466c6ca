"""The Python code of a package: shapes of schemas, their classes, and words for everything that types cannot say."""
