"""Scanning files, here and in other processes, and adding the results to an index."""
