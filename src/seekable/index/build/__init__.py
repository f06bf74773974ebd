"""Scanning files, here and in other processes, and adding what was found to an index."""
