"""Compiled code that knows arrays and codes only; the whole folder is in the stamp of the cache."""
