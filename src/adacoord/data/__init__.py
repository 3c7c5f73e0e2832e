"""One access layer over the data: rows, columns."""
