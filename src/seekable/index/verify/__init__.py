"""Comparing files with their index, without changing either."""
