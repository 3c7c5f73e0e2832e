"""Dense linear algebra in one place."""
