"""Batches of a dataset, delivered ahead of need and resumed exactly."""
