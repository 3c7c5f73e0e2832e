"""Coordinate descent on the columns."""
