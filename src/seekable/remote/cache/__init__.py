"""Ranges of objects that were fetched, kept on disk for all processes of a machine, and in memory."""
