"""Streams: chains of stages whose order depends on what the records are."""
