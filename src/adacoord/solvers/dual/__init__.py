"""Coordinate ascent on the rows of the dual."""
