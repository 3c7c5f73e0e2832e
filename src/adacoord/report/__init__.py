"""Solvers against one another on one problem: runs, tables, plots, and a page to look at."""
