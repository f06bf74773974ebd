"""Stores of objects: one protocol, and its implementations over obstore and fsspec."""
