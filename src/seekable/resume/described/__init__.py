"""Pipelines made again from their descriptions."""
