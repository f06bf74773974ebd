"""Processes and threads that make the batches of a loader."""
