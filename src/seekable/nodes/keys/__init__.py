"""Records found by their keys."""
